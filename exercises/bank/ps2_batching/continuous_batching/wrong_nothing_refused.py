"""Lengths and slots below 1 are accepted.

Hint: The contract names two inputs that must raise ValueError.
Caught by: continuous-refuses
"""


def continuous_batching(lengths, slots):
    busy_until, finish = [0] * max(slots, 1), []
    for length in lengths:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += length
        finish.append(busy_until[slot])
    return finish
