"""With NumPy, and the number of rows at which the arithmetic takes over"""

import numpy as np


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    ridge_rows = np.float64(weight_bytes) / bandwidth * flops / (2 * n_params)
    linear = weight_bytes / bandwidth * np.maximum(1, rows / ridge_rows)
    return (linear + kv_bytes / bandwidth) / n_gpus
