"""The answers come in the order in which they ended

Hint: Which prompt does the first answer of your list belong to? The order is that of the prompts.
Caught by: serve-same-answers
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    done = []
    waiting, running = list(range(len(prompts))), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        done += [answers[i] for i in running if answers[i][-1] == END or len(answers[i]) >= most]
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return done
