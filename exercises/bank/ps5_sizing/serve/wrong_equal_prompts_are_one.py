"""Answers are kept by prompt, so equal prompts share one

Hint: Two users may send the same prompt. What does your dictionary make of them?
Caught by: serve-fills-the-slots
"""


def serve(model, prompts, slots, most):
    answers = {tuple(prompt): [] for prompt in prompts}
    waiting, running = list(answers), []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        tokens = model([[*prompt, *answers[prompt]] for prompt in running])
        for prompt, token in zip(running, tokens, strict=True):
            answers[prompt].append(token)
        running = [prompt for prompt in running if answers[prompt][-1] != END and len(answers[prompt]) < most]
    return [list(answers[tuple(prompt)]) for prompt in prompts]
