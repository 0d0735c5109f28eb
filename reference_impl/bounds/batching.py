"""Batching on paper: when does each request finish, if a step gives every occupied slot one token?

Static batching fills all slots and waits for the longest request of the batch, so slots stand empty. Continuous
batching refills a slot in the step after it became free (Yu et al. 2022, "Orca", section 3). There is no model and no
clock: lengths go in, finish steps come out. `engine.scheduler` does the same to real requests. Standard library only.
"""

import heapq
from collections.abc import Sequence


def static_batching(lengths: Sequence[int], slots: int) -> list[int]:
    """Finish step of each request, in order; steps count from 1.

    Requests are taken `slots` at a time, first come first served. A batch ends with its longest request, and all its
    answers come then. `lengths` are steps per request (output tokens). Raises ValueError for a length or a number of
    slots below 1.
    """
    _check(lengths, slots)
    finish: list[int] = []
    step = 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += max(batch)
        finish += [step] * len(batch)
    return finish


def continuous_batching(lengths: Sequence[int], slots: int) -> list[int]:
    """Finish step of each request, in order; steps count from 1.

    Each request, first come first served, takes the slot that is free first. Raises ValueError as `static_batching`
    does.
    """
    _check(lengths, slots)
    free_after = [0] * slots  # a heap: the last busy step of each slot
    finish: list[int] = []
    for length in lengths:
        finish.append(free_after[0] + length)
        heapq.heapreplace(free_after, finish[-1])
    return finish


def slot_utilization(lengths: Sequence[int], slots: int, finish: Sequence[int]) -> float:
    """Share of all slot-steps, up to the last finish step, in which a slot produced a token (0 to 1; 0 without any
    request).
    """
    return sum(lengths) / (slots * max(finish)) if finish else 0.0


def _check(lengths: Sequence[int], slots: int) -> None:
    if slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}")
    for place, length in enumerate(lengths):
        if length < 1:
            raise ValueError(f"request {place} has length {length}; every request takes at least 1 step")
