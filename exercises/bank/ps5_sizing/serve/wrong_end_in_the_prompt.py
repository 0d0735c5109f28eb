"""A 0 in the prompt counts as the end

Hint: Only a token of the answer can end it. Which list do you search for END?
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
        running = [i for i in running if END not in prompts[i] + answers[i] and len(answers[i]) < most]
    return answers
