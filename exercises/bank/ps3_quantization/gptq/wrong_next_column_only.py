"""Only the next column is repaired

Hint: All later columns can make up for an error, not only the nearest one. How many weights does your repair change?
Caught by: gptq-equals-brute-force
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 : i + 2] -= np.outer(error, inverse[1:2] / inverse[0])
    return q
