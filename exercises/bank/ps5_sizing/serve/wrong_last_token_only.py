"""The model is given the last token instead of the whole text

Hint: What does the model need to know to continue a text? Compare the length of a text in your third pass with that of the prompt.
Caught by: serve-same-answers
"""


def serve(model, prompts, slots, most):
    answers = [[] for _ in prompts]
    waiting, running = list(range(len(prompts))), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([(prompts[i] + answers[i])[-1:] for i in running])
        for i, token in zip(running, tokens, strict=True):
            answers[i].append(token)
        running = [i for i in running if answers[i][-1] != END and len(answers[i]) < most]
    return answers
