"""A free slot is refilled at once: that is continuous batching.

Hint: Here nobody new starts before the whole batch is done.
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, []
    for length in lengths:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += length
        finish.append(busy_until[slot])
    return finish
