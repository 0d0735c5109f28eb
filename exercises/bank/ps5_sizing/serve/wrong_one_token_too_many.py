"""An answer gets one token more than the limit

Hint: With a limit of 4, count the tokens of an answer that does not end by itself.
Caught by: serve-same-answers
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = list(range(len(prompts))), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) <= most]
    return answers
