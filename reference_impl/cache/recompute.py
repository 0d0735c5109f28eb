"""No cache: whole sequences attend to themselves. It scores texts, and is the oracle of the tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


class Recompute:
    """A `ForwardBatch` without a cache, of one or more sequences computed from their beginning.

    `sequences`: one or more non-empty lists of token ids.
    """

    def __init__(self, *sequences: Sequence[int], device: torch.device | str = "cpu") -> None:
        lengths = [len(s) for s in sequences]
        if not lengths or 0 in lengths:
            raise ValueError(f"every sequence needs at least one token, got lengths {lengths}")
        self.lengths = lengths
        self.tokens = torch.tensor([t for s in sequences for t in s], dtype=torch.int64, device=device)
        self.positions = torch.cat([torch.arange(n, device=device) for n in lengths])
        self.last_rows = torch.tensor(lengths, device=device).cumsum(0) - 1

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal grouped-query attention inside each sequence: q [n, heads, head_dim] -> the same shape."""
        parts = zip(q.split(self.lengths), k.split(self.lengths), v.split(self.lengths), strict=True)
        return torch.cat([_causal(*(t.transpose(0, 1) for t in part)).transpose(0, 1) for part in parts])


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=True)[0]
