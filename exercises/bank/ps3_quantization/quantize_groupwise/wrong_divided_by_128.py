"""absmax / 128 as the scale

Hint: The largest weight of a group must become 127 or -127. What becomes of it in your version?
Caught by: groupwise-values
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 128).astype(np.float32)
        safe = np.where(scale > 0, scale, 1).astype(np.float64)
        q.append(np.clip(np.rint(part / safe), -127, 127).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
