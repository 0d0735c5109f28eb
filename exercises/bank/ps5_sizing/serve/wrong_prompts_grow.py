"""The answer is appended to the caller's prompt

Hint: Look at the prompts after the call. Which list does your function append to?
Caught by: serve-same-answers
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = list(range(len(prompts))), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([prompts[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
            prompts[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return answers
