"""Steps are counted from 0.

Hint: A single request of length 3 is busy in steps 1, 2 and 3: it finishes in step 3.
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], -1
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += max(batch)
        finish += [step] * len(batch)
    return finish
