"""A last, shorter group refused by reshape

Hint: 5 columns in groups of 3 cannot be reshaped. Which scale belongs to column c?
Caught by: dequantize-last-group-may-be-shorter
"""


def dequantize_groupwise(q, scales, group_size):
    rows, columns = q.shape
    return (q.reshape(rows, columns // group_size, group_size) * scales[:, :, None]).reshape(rows, columns)
