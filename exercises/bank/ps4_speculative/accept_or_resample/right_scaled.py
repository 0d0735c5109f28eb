"""v is scaled instead of the residual; a list with NumPy scalars."""

import numpy as np


def accept_or_resample(p, q, token, u, v):
    ratio = np.minimum(1.0, p[token] / q[token])
    if u < ratio:
        return [np.True_, np.int64(token)]
    edges = np.cumsum(np.clip(p - q, 0, None))
    above = np.flatnonzero(edges > v * edges[-1])
    picked = above[0] if len(above) else np.flatnonzero(p > q)[-1]
    return [np.False_, picked]
