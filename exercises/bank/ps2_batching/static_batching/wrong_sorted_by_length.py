"""Requests are sorted by length before they are batched.

Hint: First come, first served: the batches are made in the order in which the requests came.
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [0] * len(lengths), 0
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    for start in range(0, len(order), slots):
        batch = order[start : start + slots]
        step += max(lengths[i] for i in batch)
        for i in batch:
            finish[i] = step
    return finish
