"""Digits behind the point cut off by astype

Hint: `astype(np.int8)` makes 1 of 1.9. What has to come before it?
Caught by: groupwise-values
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        ratio = part / np.where(scale > 0, scale, 1).astype(np.float64)
        q.append(ratio.astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
