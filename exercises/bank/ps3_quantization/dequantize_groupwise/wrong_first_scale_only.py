"""The first scale of a row for all its groups

Hint: Your second group comes back with the scale of the first one.
Caught by: dequantize-values, dequantize-last-group-may-be-shorter
"""


def dequantize_groupwise(q, scales, group_size):
    return q * scales[:, :1]
