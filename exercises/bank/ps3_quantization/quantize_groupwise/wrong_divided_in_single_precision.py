"""Divided in float32

Hint: A quotient just beside a half becomes exactly a half in float32, and then goes to the even neighbour.
Caught by: groupwise-nearest-for-the-stored-scale
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = np.abs(part).max(axis=1, keepdims=True) / np.float32(127)
        step = np.where(scale > 0, scale, np.float32(1))
        q.append(np.rint(part / step).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
