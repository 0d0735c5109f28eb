"""The finish steps are returned in the order of finishing.

Hint: The first number belongs to the first request, even where it finishes last.
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, []
    for length in lengths:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += length
        finish.append(busy_until[slot])
    return sorted(finish)
