"""A smallest scale against division by zero, which swallows small weights

Hint: Your guard against 0 / 0 also changes groups of small weights that are not zero.
Caught by: groupwise-zeros-and-tiny-weights
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = np.maximum(np.abs(part).max(axis=1, keepdims=True) / 127, 1e-5).astype(np.float32)
        q.append(np.rint(part / scale.astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
