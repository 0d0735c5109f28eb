"""After a rejection the token is drawn from p itself.

Hint: Tokens that the draft likes were already given their chance. Only what q does not cover is left: max(p - q, 0).
Caught by: rule-resamples, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = p
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
