"""Bits returned as bytes

Hint: You are off by a factor of 8.
Caught by: weights-without-scales
"""


def weight_bytes(n_params, bits, group_size=None):
    total = n_params * bits
    if group_size is not None:
        total += 16 * -(-n_params // group_size)
    return total
