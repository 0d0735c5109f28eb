"""The columns are rounded from the last to the first

Hint: The order matters: the columns are rounded from the left, and those to the right of a column repair its error.
Caught by: gptq-by-hand
"""

import numpy as np


def gptq(weight, hessian, scales):
    weight = np.array(weight, dtype=float)
    q = np.zeros(weight.shape, dtype=np.int8)
    for i in reversed(range(weight.shape[1])):
        inverse = np.linalg.inv(hessian[: i + 1, : i + 1])[-1]
        q[:, i] = np.clip(np.rint(weight[:, i] / scales), -8, 7)
        error = weight[:, i] - q[:, i] * scales
        weight[:, :i] -= np.outer(error, inverse[:-1] / inverse[-1])
    return q
