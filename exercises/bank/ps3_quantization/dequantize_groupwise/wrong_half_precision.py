"""The weights in float16, which keeps three digits

Hint: The first three digits are right. Which precision have the scales, and which has your result?
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    steps = np.repeat(scales, group_size, axis=1)[:, : q.shape[1]]
    return q.astype(np.float16) * steps.astype(np.float16)
