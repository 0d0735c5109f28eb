"""The weights cut down to 8-bit integers

Hint: -1.5 came back as a whole number. In which type is your result?
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    weights = q * np.repeat(scales, group_size, axis=1)[:, : q.shape[1]]
    return weights.astype(q.dtype)
