"""Whole numbers throughout, rounded up to a byte, as a NumPy integer"""

import numpy as np


def weight_bytes(n_params, bits, group_size=None):
    total = np.int64(n_params) * np.int64(bits)
    if group_size is not None:
        full, rest = divmod(n_params, group_size)
        total += 16 * (full + (1 if rest else 0))
    return -(-total // 8)
