"""The scales of the first row for all rows

Hint: Each row has scales of its own. Which row do yours come from?
Caught by: dequantize-values
"""


def dequantize_groupwise(q, scales, group_size):
    return q * np.repeat(scales[0], group_size)[: q.shape[1]]
