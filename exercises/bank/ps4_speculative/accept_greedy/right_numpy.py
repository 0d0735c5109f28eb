"""NumPy: running product of the matches; an array of integers where the tokens are integers."""

import numpy as np


def accept_greedy(draft, target):
    matches = np.array([a == b for a, b in zip(draft, target, strict=False)], dtype=int)
    n = int(np.cumprod(matches).sum())
    answer = target[: n + 1]
    return np.array(answer) if isinstance(answer[0], int) else answer
