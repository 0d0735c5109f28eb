"""q is not limited to four bits

Hint: Four bits hold the integers from −8 to 7. What does your function return for a weight of 9.2 and a scale of 1?
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
    return q
