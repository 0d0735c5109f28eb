"""After a rejection the rejected token itself is returned.

Hint: (False, token): the token is the one that takes the place of the rejected guess.
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
    return False, token
