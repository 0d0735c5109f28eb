"""The last free slot is taken first, so a pass holds its texts in another order"""

def serve(model, prompts, slots, most):
    free, running, answers, started = list(range(slots)), {}, [[] for _ in prompts], 0
    while started < len(prompts) or running:
        while free and started < len(prompts):
            running[free.pop()] = started
            started += 1
        numbers = [running[slot] for slot in sorted(running)]
        tokens = model([prompts[number] + answers[number] for number in numbers])
        for slot, number, token in zip(sorted(running), numbers, tokens):
            answers[number].append(token)
            if token == END or len(answers[number]) == most:
                free.append(slot)
                del running[slot]
    return answers
