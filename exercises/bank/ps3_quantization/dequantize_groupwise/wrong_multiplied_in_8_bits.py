"""The scale rounded to an integer before it is multiplied

Hint: A scale of 0.5 counts as 0 in your version: in which type do you multiply?
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    steps = np.repeat(scales, group_size, axis=1)[:, : q.shape[1]].astype(np.int64)
    return (q * steps).astype(np.float32)
