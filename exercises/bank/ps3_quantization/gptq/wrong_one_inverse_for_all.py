"""The inverse of the whole H is used for every column

Hint: Once a column is rounded it can repair nothing any more. Which rows and columns of H belong to G for the third column?
Caught by: gptq-equals-brute-force
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    inverse = np.linalg.inv(hessian)
    for i in range(weight.shape[1]):
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 :] -= np.outer(error, inverse[i, i + 1 :] / inverse[i, i])
    return q
