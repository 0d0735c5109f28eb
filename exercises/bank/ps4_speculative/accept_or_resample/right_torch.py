"""torch tensors in and out."""

import torch


def accept_or_resample(p, q, token, u, v):
    p, q = torch.as_tensor(p, dtype=torch.float64), torch.as_tensor(q, dtype=torch.float64)
    accepted = bool(p[token] / q[token] > u)
    if accepted:
        return accepted, torch.tensor(token)
    possible = torch.nonzero(p > q).flatten()
    weights = (p - q)[possible]
    edges = torch.cumsum(weights, 0) / weights.sum()
    place = torch.searchsorted(edges, torch.tensor([v], dtype=torch.float64), right=True)
    return accepted, possible[place.clamp(max=len(possible) - 1)][0]
