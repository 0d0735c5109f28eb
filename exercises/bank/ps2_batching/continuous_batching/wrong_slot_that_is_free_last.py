"""The next request goes to the slot that is busy longest.

Hint: Which slot is free first, the one with the smallest or with the largest last step?
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, []
    for i, length in enumerate(lengths):
        slot = i if i < slots else busy_until.index(max(busy_until))
        busy_until[slot] += length
        finish.append(busy_until[slot])
    return finish
