"""The error is taken from the weights as they were at the start

Hint: By the time a column is rounded it has been repaired already. From which weight do you have to take its error?
Caught by: gptq-equals-brute-force
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    first = weight.copy()
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = first[:, i] - q[:, i] * scales
        weight[:, i + 1 :] -= np.outer(error, inverse[1:] / inverse[0])
    return q
