"""u decides on the acceptance and picks the new token too.

Hint: After a rejection u is known to be large. A second, independent number v is there for the pick.
Caught by: rule-resamples, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), u, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
