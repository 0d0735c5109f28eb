"""Requests are sorted by the length of their prompts

Hint: A short prompt that came late has to wait like any other. In which order do your requests get their slots?
Caught by: serve-first-come-first-served
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = sorted(range(len(prompts)), key=lambda i: len(prompts[i])), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return answers
