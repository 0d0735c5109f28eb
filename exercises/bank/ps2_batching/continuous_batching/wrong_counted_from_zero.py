"""Steps are counted from 0.

Hint: A single request of length 3 is busy in steps 1, 2 and 3: it finishes in step 3.
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, []
    for length in lengths:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += length
        finish.append(busy_until[slot] - 1)
    return finish
