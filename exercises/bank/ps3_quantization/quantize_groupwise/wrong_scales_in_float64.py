"""Scales not stored in 32 bits

Hint: Look at `scales.dtype`. The text says how scales are stored.
Caught by: groupwise-form
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size].astype(np.float64)
        scale = np.abs(part).max(axis=1, keepdims=True) / 127
        q.append(np.rint(part / np.where(scale > 0, scale, 1)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
