"""All requests are in one batch, whatever the number of slots

Hint: Look at the number of texts in your first pass. How many slots are there?
Caught by: serve-fills-the-slots
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = list(range(len(prompts))), []
    while waiting or running:
        while waiting:
            running.append(waiting.pop(0))
        tokens = model([prompts[i] + answers[i] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return answers
