"""H itself takes the place of its inverse

Hint: Which matrix is G? Print its entries for the example by hand and compare them with those in the text.
Caught by: gptq-by-hand
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = hessian[i, i:]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i + 1 :] -= np.outer(error, inverse[1:] / inverse[0])
    return q
