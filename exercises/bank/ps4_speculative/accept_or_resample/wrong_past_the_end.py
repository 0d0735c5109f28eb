"""Where rounding leaves the running sum below v, the token is past the end.

Hint: The running sum of rounded numbers may end a hair below 1. Which token should the largest v pick?
Caught by: rule-edges
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    return False, int(picked)
