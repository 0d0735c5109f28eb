"""NumPy: argmax over a long range, which takes the first of equals."""

import numpy as np


def best_draft_length(alpha, cost):
    k = np.arange(5000)
    return np.argmax((1 - float(alpha) ** (k + 1)) / (1 - alpha) / (1 + k * cost))
