"""One Cholesky factor of the inverse, as the paper has it, and torch tensors"""

import numpy as np
import torch


def gptq(weight, hessian, scales):
    upper = torch.tensor(np.linalg.cholesky(np.linalg.inv(hessian)).T.copy())
    weight, scales = torch.tensor(weight, dtype=torch.float64), torch.tensor(scales, dtype=torch.float64)
    q = torch.zeros(weight.shape, dtype=torch.int64)
    for i in range(weight.shape[1]):
        q[:, i] = torch.round(weight[:, i] / scales).clamp(-8, 7)
        error = (weight[:, i] - q[:, i] * scales) / upper[i, i]
        weight[:, i + 1 :] -= torch.outer(error, upper[i, i + 1 :])
    return q
