"""Two bytes for each group, rounded up with math.ceil"""

import math


def weight_bytes(n_params, bits, group_size=None):
    total = n_params * bits / 8
    if group_size is not None:
        total += 2 * math.ceil(n_params / group_size)
    return total
