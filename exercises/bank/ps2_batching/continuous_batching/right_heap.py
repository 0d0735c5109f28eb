"""A heap of the steps at which slots are free."""

import heapq


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    free = [0] * slots
    finish = []
    for length in lengths:
        finish.append(heapq.heappop(free) + length)
        heapq.heappush(free, finish[-1])
    return finish
