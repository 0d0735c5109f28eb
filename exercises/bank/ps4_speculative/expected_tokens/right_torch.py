"""torch: running product, in double precision."""

import torch


def expected_tokens(alpha, k):
    factors = torch.full((k + 1,), float(alpha), dtype=torch.float64)
    factors[0] = 1
    return factors.cumprod(0).sum()
