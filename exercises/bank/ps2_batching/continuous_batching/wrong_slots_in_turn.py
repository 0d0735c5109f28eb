"""Requests are dealt out to the slots in turn, like cards.

Hint: The next request goes to the slot that is free first, which need not be the next one in turn.
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, []
    for i, length in enumerate(lengths):
        busy_until[i % slots] += length
        finish.append(busy_until[i % slots])
    return finish
