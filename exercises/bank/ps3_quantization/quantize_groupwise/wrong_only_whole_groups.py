"""A last, shorter group refused by reshape

Hint: `reshape` needs columns that the group size divides. What if it does not?
Caught by: groupwise-last-group-may-be-shorter
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    rows, columns = weight.shape
    blocks = weight.reshape(rows, columns // group_size, group_size)
    scales = (np.abs(blocks).max(axis=2) / 127).astype(np.float32)
    ratio = blocks / np.where(scales > 0, scales, 1).astype(np.float64)[:, :, None]
    return np.rint(ratio).astype(np.int8).reshape(rows, columns), scales
