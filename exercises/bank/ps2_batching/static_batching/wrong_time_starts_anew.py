"""Each batch is counted from step 1 again.

Hint: The second batch starts after the first one. Do your steps go on from there?
Caught by: static-waits-for-the-longest
"""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish = []
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        finish += [max(batch)] * len(batch)
    return finish
