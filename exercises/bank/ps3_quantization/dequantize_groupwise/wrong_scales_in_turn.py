"""Scales dealt out in turn: tile instead of repeat

Hint: The first `group_size` columns share the first scale. Compare `np.tile` with `np.repeat`.
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    return q * np.tile(scales, (1, group_size))[:, : q.shape[1]]
