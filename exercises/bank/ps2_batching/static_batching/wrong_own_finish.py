"""Each request of a batch finishes after its own length.

Hint: In static batching the answers of a batch come together, when its longest request is done.
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        finish += [step + length for length in batch]
        step += max(batch)
    return finish
