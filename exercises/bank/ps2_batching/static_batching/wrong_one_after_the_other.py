"""The requests of a batch run one after the other, so its length is their sum.

Hint: All slots work in the same step: a batch takes as long as its longest request.
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += sum(batch)
        finish += [step] * len(batch)
    return finish
