"""A batch ends with its first request.

Hint: Which request of the batch does everybody wait for?
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += batch[0]
        finish += [step] * len(batch)
    return finish
