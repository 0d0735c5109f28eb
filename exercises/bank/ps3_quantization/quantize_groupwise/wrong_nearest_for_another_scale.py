"""q computed with the exact scale, before it was rounded for storage

Hint: The way back multiplies by the stored float32 scale, so q must be nearest for that one.
Caught by: groupwise-nearest-for-the-stored-scale
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size].astype(np.float64)
        scale = np.abs(part).max(axis=1, keepdims=True) / 127
        q.append(np.rint(part / np.where(scale > 0, scale, 1)).astype(np.int8))
        scales.append(scale.astype(np.float32))
    return np.hstack(q), np.hstack(scales)
