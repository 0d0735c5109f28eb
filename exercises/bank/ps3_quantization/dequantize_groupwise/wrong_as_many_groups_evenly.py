"""Columns spread evenly over the groups

Hint: Groups of 3 and 2 columns: how many columns does your function give to the first scale?
Caught by: dequantize-last-group-may-be-shorter
"""


def dequantize_groupwise(q, scales, group_size):
    columns, groups = q.shape[1], scales.shape[1]
    group_of_column = np.arange(columns) * groups // columns
    return q * scales[:, group_of_column]
