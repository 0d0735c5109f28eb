"""A group of zeros refused

Hint: A pruned model has whole groups of zeros. They are no error: what are q and scale?
Caught by: groupwise-zeros-and-tiny-weights
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        if (scale == 0).any():
            raise ValueError(f"group {start // group_size} holds only zeros")
        q.append(np.rint(part / scale.astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
