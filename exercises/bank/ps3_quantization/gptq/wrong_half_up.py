"""Halves are rounded up

Hint: Look at a weight exactly half-way between two integers: to which of them does the text want it to go?
Caught by: gptq-without-correlation
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.clip(np.floor(weight[:, i] / scales + 0.5), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 :] -= np.outer(error, inverse[1:] / inverse[0])
    return q
