"""A free slot stays empty until the whole batch is done: that is static batching.

Hint: In the worked example request C ends in step 2. In which step does D start?
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        finish += [step + length for length in batch]
        step += max(batch)
    return finish
