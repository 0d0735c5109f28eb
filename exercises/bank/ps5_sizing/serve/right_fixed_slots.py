"""A table of slots, some of them empty; tuples as answers"""

def serve(model, prompts, slots, most):
    table, answers, started = [None] * slots, [()] * len(prompts), 0
    while True:
        for slot in range(slots):
            if table[slot] is None and started < len(prompts):
                table[slot] = started
                started += 1
        used = [slot for slot in range(slots) if table[slot] is not None]
        if not used:
            return answers
        tokens = model([[*prompts[table[slot]], *answers[table[slot]]] for slot in used])
        for slot, token in zip(used, tokens, strict=True):
            number = table[slot]
            answers[number] += (int(token),)
            if token == END or len(answers[number]) >= most:
                table[slot] = None
