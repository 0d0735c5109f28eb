"""A deque of waiting requests, and texts that grow"""

from collections import deque


def serve(model, prompts, slots, most):
    waiting = deque(enumerate(prompts))
    running, answers = {}, {}
    while waiting or running:
        while waiting and len(running) < slots:
            number, prompt = waiting.popleft()
            running[number] = list(prompt)
        numbers = list(running)
        for number, token in zip(numbers, model(list(running.values())), strict=True):
            running[number].append(token)
            answer = running[number][len(prompts[number]) :]
            if token == END or len(answer) == most:
                answers[number] = answer
                del running[number]
    return [answers[number] for number in range(len(prompts))]
