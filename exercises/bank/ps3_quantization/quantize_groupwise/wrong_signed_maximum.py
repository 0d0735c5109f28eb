"""The largest weight instead of the largest absolute value

Hint: A group of -127 and 2: which of the two sets the scale?
Caught by: groupwise-values
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (part.max(axis=1, keepdims=True) / 127).astype(np.float32)
        ratio = part / np.where(scale != 0, scale, 1).astype(np.float64)
        q.append(np.clip(np.rint(ratio), -127, 127).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
