"""NaN and infinity quantized without a word

Hint: One nan spoils its whole group, silently. What is asked for instead?
Caught by: groupwise-refuses-nan-and-infinity
"""


def quantize_groupwise(weight, group_size):
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float32)
        q.append(np.rint(part / np.where(scale > 0, scale, 1).astype(np.float64)).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
