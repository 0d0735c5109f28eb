"""The repair has the wrong sign

Hint: Look at step 2 again: is the repair added or subtracted? In the example by hand the second weight grows.
Caught by: gptq-by-hand
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 :] += np.outer(error, inverse[1:] / inverse[0])
    return q
