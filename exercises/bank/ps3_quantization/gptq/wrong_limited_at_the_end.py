"""q is limited only after the repair

Hint: What does a later column have to make up for if a weight was too large for four bits? The error is that of the integer you return.
Caught by: gptq-stays-in-four-bits
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.rint(weight[:, i] / scales)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 :] -= np.outer(error, inverse[1:] / inverse[0])
    return np.clip(q, -8, 7)
