"""A step is lost between two batches.

Hint: The next batch starts in the step right after: if one ends in step 8, the next one runs from step 9.
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += max(batch)
        finish += [step] * len(batch)
        step += 1
    return finish
