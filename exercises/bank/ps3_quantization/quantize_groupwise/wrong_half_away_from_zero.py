"""Half-way cases rounded away from zero

Hint: 0.5 became 1 and 2.5 became 3. To which neighbour shall a tie go?
Caught by: groupwise-ties-to-even
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        ratio = part / np.where(scale > 0, scale, 1).astype(np.float64)
        q.append(np.trunc(ratio + np.copysign(0.5, ratio)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
