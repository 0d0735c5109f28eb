"""A slot stays empty for one pass before the next request gets it

Hint: An answer ends in pass 2. In which pass does the next request take part, and in which one does it in yours?
Caught by: serve-fills-the-slots
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = list(range(len(prompts))), []
    free = slots
    while waiting or running:
        while waiting and free > 0:
            running.append(waiting.pop(0))
            free -= 1
        free = slots - len(running)
        if not running:
            continue
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return answers
