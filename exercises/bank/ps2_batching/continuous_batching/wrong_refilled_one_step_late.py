"""A slot is refilled only after it stood empty for a step.

Hint: A slot whose request ends in step 2 works on the next request in step 3 already.
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [-1] * slots, []
    for length in lengths:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += 1 + length
        finish.append(busy_until[slot])
    return finish
