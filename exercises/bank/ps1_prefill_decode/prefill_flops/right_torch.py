"""A torch tensor without dimensions"""

import torch


def prefill_flops(n_params, n_tokens):
    return torch.tensor(n_params, dtype=torch.float64) * n_tokens * 2
