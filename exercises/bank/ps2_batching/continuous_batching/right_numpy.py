"""NumPy: argmin over the slots, an array returned."""

import numpy as np


def continuous_batching(lengths, slots):
    if slots < 1 or np.any(np.asarray(lengths) < 1):
        raise ValueError("slots and lengths must be at least 1")
    busy_until = np.zeros(slots, dtype=np.int64)
    finish = np.zeros(len(lengths), dtype=np.int64)
    for i, length in enumerate(lengths):
        slot = busy_until.argmin()
        busy_until[slot] += length
        finish[i] = busy_until[slot]
    return finish
