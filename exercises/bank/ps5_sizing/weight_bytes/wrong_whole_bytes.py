"""Bytes of one weight cut down to whole ones

Hint: Half a byte is not zero. Where do you divide by 8, and how?
Caught by: weights-without-scales, weights-of-other-formats
"""


def weight_bytes(n_params, bits, group_size=None):
    scales = 2 * -(-n_params // group_size) if group_size else 0
    return n_params * (bits // 8) + scales
