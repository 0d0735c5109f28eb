"""The last batch is filled up, and the padding is returned as well.

Hint: There is one finish step for each request, no matter how many slots stay empty.
Caught by: static-last-batch-may-be-smaller
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        step += max(lengths[start : start + slots])
        finish += [step] * slots
    return finish
