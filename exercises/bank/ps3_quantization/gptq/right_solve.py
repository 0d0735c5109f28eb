"""The later columns solved for anew after each rounding"""

import numpy as np


def gptq(weight, hessian, scales):
    first, now = np.array(weight, dtype=float), np.array(weight, dtype=float)
    q = np.zeros(first.shape, dtype=int)
    for i in range(first.shape[1]):
        q[:, i] = np.clip(np.rint(now[:, i] / scales), -8, 7)
        done = first[:, : i + 1] - q[:, : i + 1] * scales[:, None]
        later = hessian[i + 1 :, i + 1 :]
        now[:, i + 1 :] = first[:, i + 1 :] + np.linalg.solve(later, hessian[i + 1 :, : i + 1] @ done.T).T
    return q
