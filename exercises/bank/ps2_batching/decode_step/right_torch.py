"""A torch tensor of two numbers in double precision."""

import torch


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    each = torch.tensor([context * kv_bytes_per_token], dtype=torch.float64).expand(batch)
    seconds = (weight_bytes + each.sum()) / bandwidth
    return torch.stack([seconds, batch / seconds])
