"""u is compared with q / p.

Hint: Where the target likes a token better than the draft does, it must always be kept.
Caught by: rule-accepts, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u * p[token] < q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.searchsorted(np.cumsum(residual), v, side="right")
    picked = min(picked, np.flatnonzero(residual)[-1])
    return False, int(picked)
