"""A lower limit of 1e-8 for the scale

Hint: A limit against division by zero also catches small weights. Which scales does yours change?
Caught by: groupwise-zeros-and-tiny-weights
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = np.maximum(np.abs(part).max(axis=1, keepdims=True) / np.float32(127), np.float32(1e-8))
        step = np.where(scale > 0, scale, np.float32(1))
        q.append(np.rint(part / step.astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
