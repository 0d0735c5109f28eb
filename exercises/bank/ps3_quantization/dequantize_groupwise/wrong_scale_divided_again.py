"""Divided by 127 once more

Hint: The scale has the division by 127 in it already.
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    return q / 127 * np.repeat(scales, group_size, axis=1)[:, : q.shape[1]]
