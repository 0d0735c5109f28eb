"""NumPy, q as an array of integers"""


def quantize_group(weights):
    w = np.asarray(weights, dtype=np.float64)
    scale = np.abs(w).max() / 127
    q = np.zeros(len(w), dtype=np.int64) if scale == 0 else np.rint(w / scale).astype(np.int64)
    return scale, q
