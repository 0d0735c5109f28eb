"""An infinite scale for a group of zeros

Hint: 0 / inf is 0, but on the way back 0 · inf is nan. Which scale is harmless in both directions?
Caught by: groupwise-zeros-and-tiny-weights
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        scale[scale == 0] = np.inf
        q.append(np.rint(part / scale.astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
