"""Rounded numbers that are still floats

Hint: 7.0 is rounded, and not an integer yet. Which type has the array in which you collect q?
Caught by: gptq-by-hand
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight, q = np.array(weight, dtype=float), np.zeros(weight.shape)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 :] -= np.outer(error, inverse[1:] / inverse[0])
    return q
