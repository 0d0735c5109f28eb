"""A slot is filled again only when all slots are free

Hint: When one answer has ended and two others go on, who uses its slot in the next pass?
Caught by: serve-fills-the-slots
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = list(range(len(prompts))), []
    busy = False
    while waiting or running:
        while waiting and len(running) < slots and not busy:
            running.append(waiting.pop(0))
        busy = True
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
        busy = bool(running)
    return answers
