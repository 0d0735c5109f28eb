"""The residual is not divided by its sum.

Hint: The parts of p that q does not cover add up to less than 1. What must v be compared with?
Caught by: rule-resamples, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
