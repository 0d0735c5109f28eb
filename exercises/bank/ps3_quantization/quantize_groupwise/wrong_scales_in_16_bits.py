"""The scale rounded to 16 bits on the way

Hint: A scale of 1e-8 is 0 in float16. In which precision do you keep it?
Caught by: groupwise-zeros-and-tiny-weights
"""


def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    q, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        scale = (np.abs(part).max(axis=1, keepdims=True) / 127).astype(np.float16).astype(np.float32)
        ratio = part / np.where(scale > 0, scale, 1).astype(np.float64)
        q.append(np.clip(np.rint(ratio), -127, 127).astype(np.int8))
        scales.append(scale)
    return np.hstack(q), np.hstack(scales)
