"""A list of free steps that is kept sorted; ties go to another slot than in the reference."""

import bisect


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    free, finish = [0 for _ in range(slots)], []
    for length in lengths:
        end = free.pop(0) + length
        bisect.insort_left(free, end)
        finish += [end]
    return finish
