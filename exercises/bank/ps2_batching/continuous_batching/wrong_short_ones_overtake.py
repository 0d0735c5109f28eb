"""Only the requests that wait are sorted by length; the first ones start as they came.

Hint: First come, first served: a request that arrived earlier starts earlier, or at the same time.
Caught by: continuous-first-come-first-served
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until, finish = [0] * slots, [0] * len(lengths)
    order = list(range(len(lengths)))
    order[slots:] = sorted(order[slots:], key=lambda i: lengths[i])
    for i in order:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += lengths[i]
        finish[i] = busy_until[slot]
    return finish
