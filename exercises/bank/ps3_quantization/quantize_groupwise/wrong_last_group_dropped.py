"""The last, shorter group dropped

Hint: 10 columns in groups of 4 are three groups, the last one of 2. Count yours.
Caught by: groupwise-last-group-may-be-shorter
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    rows, columns = weight.shape
    groups = max(columns // group_size, 1)
    blocks = weight[:, : groups * group_size].reshape(rows, groups, -1)
    scales = (np.abs(blocks).max(axis=2) / 127).astype(np.float32)
    ratio = blocks / np.where(scales > 0, scales, 1).astype(np.float64)[:, :, None]
    return np.rint(ratio).astype(np.int8).reshape(rows, -1), scales
