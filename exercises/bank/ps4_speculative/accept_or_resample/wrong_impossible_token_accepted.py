"""A token with p = 0 is accepted for u = 0.

Hint: Strictly below: u < p / q. With p = 0 no u is.
Caught by: rule-accepts
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u <= p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
