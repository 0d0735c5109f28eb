"""Simulation of every step, with a queue."""

from collections import deque


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    queue, active, step = deque(enumerate(lengths)), [], 0
    finish = [None] * len(lengths)
    while queue or active:
        while queue and len(active) < slots:
            active.append(list(queue.popleft()))
        step += 1
        for entry in active:
            entry[1] -= 1
            if entry[1] == 0:
                finish[entry[0]] = step
        active = [entry for entry in active if entry[1] > 0]
    return tuple(finish)
