"""A guess is accepted exactly where p >= q: u is not used.

Hint: Where p < q the guess is still kept sometimes: with probability p / q. That is what u is for.
Caught by: rule-accepts, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if p[token] >= q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
