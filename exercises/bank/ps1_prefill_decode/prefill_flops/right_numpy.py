"""A NumPy number"""

import numpy as np


def prefill_flops(n_params, n_tokens):
    return np.prod(np.array([2, n_params, n_tokens], dtype=np.float64))
