"""Two loops over rows and groups"""

import math


def quantize_groupwise(weight, group_size):
    rows, columns = weight.shape
    q = np.zeros((rows, columns), dtype=np.int8)
    scales = np.zeros((rows, math.ceil(columns / group_size)), dtype=np.float32)
    for r in range(rows):
        for g in range(scales.shape[1]):
            part = [float(w) for w in weight[r, g * group_size : (g + 1) * group_size]]
            if not all(math.isfinite(w) for w in part):
                raise ValueError(f"row {r}, group {g}: not finite")
            scales[r, g] = max(map(abs, part)) / 127
            if scales[r, g] > 0:
                q[r, g * group_size : (g + 1) * group_size] = [round(w / float(scales[r, g])) for w in part]
    return q, scales
