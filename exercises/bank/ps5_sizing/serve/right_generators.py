"""Each request is a generator that asks for tokens"""

def serve(model, prompts, slots, most):
    def request(prompt, answer):
        while len(answer) < most and (not answer or answer[-1] != END):
            answer.append((yield prompt + answer))

    answers = [[] for _ in prompts]
    line = [request(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
    running = []
    while line or running:
        while line and len(running) < slots:
            running.append((line[0], next(line.pop(0))))
        tokens, going_on = model([text for _, text in running]), []
        for (one, _), token in zip(running, tokens, strict=True):
            try:
                going_on.append((one, one.send(token)))
            except StopIteration:
                pass
        running = going_on
    return answers
