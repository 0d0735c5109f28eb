"""At most one request starts in a step.

Hint: All free slots are filled before the step: at the beginning, as many requests as there are slots.
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    waiting, running, finish, step = list(range(len(lengths))), {}, [0] * len(lengths), 0
    while waiting or running:
        if waiting and len(running) < slots:
            request = waiting.pop(0)
            running[request] = lengths[request]
        step += 1
        for request in list(running):
            running[request] -= 1
            if running[request] == 0:
                finish[request] = step
                del running[request]
    return finish
