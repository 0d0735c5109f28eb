"""q rounded but left as floats

Hint: Rounding does not change the type: look at `q.dtype`.
Caught by: groupwise-form, groupwise-values
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        q.append(np.rint(part / np.where(scale > 0, scale, 1)))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
