"""The last, shorter group dropped

Hint: Count the columns that you give back.
Caught by: dequantize-last-group-may-be-shorter
"""


def dequantize_groupwise(q, scales, group_size):
    rows, columns = q.shape
    whole = columns // group_size
    blocks = q[:, : whole * group_size].reshape(rows, whole, group_size)
    return (blocks * scales[:, :whole, None]).reshape(rows, -1)
