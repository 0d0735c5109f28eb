"""The size of an array that is never made"""

import numpy as np


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    shape = (n_layers, 2, n_kv_heads, head_dim)
    return np.float64(np.prod(shape)) * bytes_per_value
