"""torch: split, maximum and running total as tensors."""

import torch


def static_batching(lengths, slots):
    if slots < 1 or min(lengths, default=1) < 1:
        raise ValueError("slots and lengths must be at least 1")
    if not lengths:
        return []
    parts = torch.tensor(lengths).split(slots)
    ends = torch.stack([part.max() for part in parts]).cumsum(0)
    return torch.cat([end.expand(len(part)) for end, part in zip(ends, parts, strict=True)])
