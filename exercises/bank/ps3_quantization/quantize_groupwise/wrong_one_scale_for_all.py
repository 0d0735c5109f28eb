"""One scale for the whole matrix

Hint: All your scales are equal. Along which axes do you take the maximum?
Caught by: groupwise-values
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    rows, columns = weight.shape
    scale = np.float32(np.abs(weight).max() / 127)
    q = np.rint(weight / np.float64(scale if scale > 0 else 1)).astype(np.int8)
    return q, np.full((rows, -(-columns // group_size)), scale, dtype=np.float32)
