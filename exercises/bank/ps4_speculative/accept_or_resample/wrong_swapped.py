"""The token is returned first.

Hint: The contract says (accepted, token).
Caught by: rule-accepts
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return token, True
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return int(picked), False
