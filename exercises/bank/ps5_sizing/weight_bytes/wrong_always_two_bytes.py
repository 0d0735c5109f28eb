"""Two bytes a weight, whatever its bits

Hint: Try 8 bits and 4 bits: which argument never shows in your result?
Caught by: weights-without-scales, weights-of-other-formats
"""


def weight_bytes(n_params, bits, group_size=None):
    scales = 2 * -(-n_params // group_size) if group_size else 0
    return 2 * n_params + scales
