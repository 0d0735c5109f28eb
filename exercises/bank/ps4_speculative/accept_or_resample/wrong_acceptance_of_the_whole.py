"""A guess is accepted with the overall rate, the sum of min(p, q), whichever token it is.

Hint: That sum is the average. Each token has its own probability of being kept, p / q.
Caught by: rule-accepts, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < np.minimum(p, q).sum():
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
