"""Log-probabilities of chosen tokens and of the likeliest others, as the model itself gives them.

They come from the logits alone, before temperature, top-k, top-p and penalties, so they say what the model thought and
not what the request made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TokenLogprob:
    """A token of an answer with its log-probability, and the likeliest tokens at its place, likeliest first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


def logprobs_of(logits: Tensor, tokens: Sequence[int], n_top: int) -> tuple[TokenLogprob, ...]:
    """For each token chosen from a row of logits [len(tokens), vocabulary], with the `n_top` likeliest beside it."""
    logprobs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    values, ids = logprobs.topk(min(n_top, logprobs.shape[-1]), dim=-1)
    chosen = logprobs.gather(-1, torch.tensor(tokens, device=logits.device).unsqueeze(-1)).flatten().tolist()
    tops = (tuple(zip(*row, strict=True)) for row in zip(ids.tolist(), values.tolist(), strict=True))
    return tuple(map(TokenLogprob, tokens, chosen, tops))
