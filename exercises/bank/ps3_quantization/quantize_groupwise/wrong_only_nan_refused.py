"""Infinity accepted, only NaN refused

Hint: `isnan` says False for inf. Which function covers both?
Caught by: groupwise-refuses-nan-and-infinity
"""


def quantize_groupwise(weight, group_size):
    if np.isnan(weight).any():
        raise ValueError("nan")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        q.append(np.rint(part / np.where(scale > 0, scale, 1).astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
