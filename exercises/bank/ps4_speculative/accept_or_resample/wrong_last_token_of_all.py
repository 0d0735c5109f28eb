"""Where rounding leaves the running sum below v, the last token of the vocabulary is picked.

Hint: The last token may have no residual at all. Which is the last one that may be picked?
Caught by: rule-edges
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = min(np.searchsorted(np.cumsum(residual), v, side="right"), len(p) - 1)
    return False, int(picked)
