"""Only the slot that is free first is ever used again; the others are lost.

Hint: After the first requests, does every slot that becomes free take another one?
Caught by: continuous-refills-a-slot
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    finish = list(lengths[:slots])
    free_at = min(finish, default=0)
    for length in lengths[slots:]:
        free_at += length
        finish.append(free_at)
    return finish
