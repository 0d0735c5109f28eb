"""Requests are sorted by length instead of order of arrival

Hint: Who has waited longest gets the next slot, not who looks quickest. In which order do your requests start?
Caught by: serve-first-come-first-served
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = sorted(range(len(prompts)), key=lambda i: prompts[i][-1]), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return answers
