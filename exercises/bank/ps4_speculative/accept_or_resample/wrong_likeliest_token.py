"""After a rejection the token with the largest residual is taken, whatever v is.

Hint: The other tokens of the residual must come out too, each with its probability.
Caught by: rule-resamples, rule-is-exact
"""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    if u < p[token] / q[token]:
        return True, token
    residual = np.maximum(p - q, 0)
    residual = residual / residual.sum()
    picked = np.argmax(residual)
    return False, int(picked)
