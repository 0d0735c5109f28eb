"""The groups counted with divmod, the result a NumPy number"""

import numpy as np


def weight_bytes(n_params, bits, group_size=None):
    total = np.float64(n_params) * bits
    if group_size is not None:
        full, rest = divmod(n_params, group_size)
        total += 16 * (full + (1 if rest else 0))
    return total / 8
