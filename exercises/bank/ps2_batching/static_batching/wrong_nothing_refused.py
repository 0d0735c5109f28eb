"""Lengths and slots below 1 are accepted.

Hint: The contract names two inputs that must raise ValueError.
Caught by: static-refuses
"""


def static_batching(lengths, slots):
    if slots < 1:
        return []
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += max(batch)
        finish += [step] * len(batch)
    return finish
