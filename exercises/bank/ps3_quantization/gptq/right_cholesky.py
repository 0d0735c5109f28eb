"""One Cholesky factor of the inverse, in torch, as the paper does it"""

import torch


def gptq(weight, hessian, scales):
    weight, hessian = torch.tensor(weight, dtype=torch.float64), torch.tensor(hessian, dtype=torch.float64)
    scales = torch.tensor(scales, dtype=torch.float64)
    upper = torch.linalg.cholesky(torch.linalg.inv(hessian), upper=True)
    q = torch.zeros(weight.shape, dtype=torch.int64)
    for i in range(weight.shape[1]):
        q[:, i] = torch.round(weight[:, i] / scales).clamp(-8, 7)
        error = (weight[:, i] - q[:, i] * scales) / upper[i, i]
        weight[:, i + 1 :] -= torch.outer(error, upper[i, i + 1 :])
    return q
