"""The token 0 is treated as if nothing had been picked.

Hint: `picked or ...` goes on where picked is 0, and 0 is a token like any other.
Caught by: rule-resamples, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked) or int(np.flatnonzero(residual)[-1])
