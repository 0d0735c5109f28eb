"""The shortest waiting request goes first.

Hint: First come, first served: nobody overtakes, however short.
Caught by: continuous-first-come-first-served
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, [0] * len(lengths)
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += lengths[i]
        finish[i] = busy_until[slot]
    return finish
