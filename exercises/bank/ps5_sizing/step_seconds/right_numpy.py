"""The slowest of the GPUs, as a NumPy number"""

import numpy as np


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    shares = np.full(n_gpus, (weight_bytes + kv_bytes) / n_gpus)
    return (shares / bandwidth).max()
