"""After a rejection the token is drawn from p without the rejected token.

Hint: Leaving out one token is not enough: from each token the part that q covers must be taken away.
Caught by: rule-resamples, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = p.copy()
    residual[token] = 0
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
