"""One scale for each row

Hint: All scales of a row are equal in your version. Which weights shall share one?
Caught by: groupwise-values
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    scale = (np.abs(weight).max(axis=1, keepdims=True) / 127).astype(np.float32)
    q = np.rint(weight / np.where(scale > 0, scale, 1).astype(np.float64)).astype(np.int8)
    return q, np.repeat(scale, -(-weight.shape[1] // group_size), axis=1)
