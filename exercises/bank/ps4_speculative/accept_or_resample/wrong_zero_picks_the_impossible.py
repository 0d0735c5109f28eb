"""For v = 0 a token without residual can be picked.

Hint: The first token whose running sum is above v, not at least v: v can be exactly 0.
Caught by: rule-edges
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="left")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
