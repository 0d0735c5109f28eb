"""16 bits added as 16 bytes

Hint: Were the scales turned from bits into bytes like the weights?
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    groups = -(-n_params // group_size) if group_size else 0
    return n_params * bits / 8 + 16 * groups
