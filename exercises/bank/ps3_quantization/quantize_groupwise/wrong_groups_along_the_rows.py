"""Groups down the rows instead of along the columns

Hint: A group is a piece of one row. Which axis do you cut?
Caught by: groupwise-form
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[0], group_size):
        part = weight[start : start + group_size]
        scale = (np.abs(part).max(axis=0, keepdims=True) / 127).astype(np.float32)
        q.append(np.rint(part / np.where(scale > 0, scale, 1).astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.vstack(q), np.vstack(scales).T
