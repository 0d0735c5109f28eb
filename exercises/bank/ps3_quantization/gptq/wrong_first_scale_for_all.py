"""The first row's scale is used for all rows

Hint: Each row has a scale of its own. Does your result change when only the second scale changes?
Caught by: gptq-without-correlation
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in range(weight.shape[1]):
        inverse = np.linalg.inv(hessian[i:, i:])[0]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales[0]), -8, 7)
        error = weight[:, i] - q[:, i] * scales[0]
        weight[:, i + 1 :] -= np.outer(error, inverse[1:] / inverse[0])
    return q
