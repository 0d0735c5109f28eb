"""Divided by the scale instead of multiplied

Hint: Quantizing divided by the scale. What undoes that?
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    return q / np.repeat(scales, group_size, axis=1)[:, : q.shape[1]]
