"""A last batch that does not fill all slots is dropped.

Hint: Count the finish steps that you return: is there one for every request?
Caught by: static-last-batch-may-be-smaller
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for number in range(len(lengths) // slots):
        batch = lengths[number * slots : (number + 1) * slots]
        step += max(batch)
        finish += [step] * len(batch)
    return finish
