"""NumPy, the last group filled up with zeros that do not count"""


def quantize_groupwise(weight, group_size):
    weight = np.array(weight, dtype=np.float32)
    if np.isnan(weight).any() or np.isinf(weight).any():
        raise ValueError("the weights hold nan or infinity")
    rows, columns = weight.shape
    padded = np.pad(weight, [(0, 0), (0, -columns % group_size)]).reshape(rows, -1, group_size)
    scales = np.abs(padded).max(axis=-1) / np.float32(127)
    step = np.where(scales == 0, 1.0, scales.astype(np.float64))
    q = np.rint(padded / step[..., None]).reshape(rows, -1)[:, :columns]
    return q.astype(np.int8), scales
