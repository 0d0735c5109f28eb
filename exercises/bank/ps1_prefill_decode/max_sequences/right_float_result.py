"""A whole number as a float"""

import numpy as np


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if not weight_bytes <= memory_bytes:
        raise ValueError(f"{weight_bytes} bytes of weights do not fit into {memory_bytes}")
    return np.floor((memory_bytes - weight_bytes) / kv_bytes_per_token / context + 1e-12)
