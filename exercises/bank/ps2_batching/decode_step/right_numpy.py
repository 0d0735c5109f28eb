"""NumPy scalars, a tuple built from an array."""

import numpy as np


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    read = np.float64(weight_bytes) + np.float64(batch) * context * kv_bytes_per_token
    seconds = np.divide(read, bandwidth)
    return tuple(np.array([seconds, batch / seconds]))
