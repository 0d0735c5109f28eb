"""From logits to the next token: temperature, top-k and top-p make probabilities, and a number in [0, 1) picks one.

These are two steps because speculative decoding needs the exact distribution that a token was drawn from. The number
comes from outside, so every draw can be repeated. Top-p (nucleus) sampling: Holtzman et al. 2020.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_impl.decoding.penalties import Penalties

# Probabilities come from float32 logits: a set of tokens this close to top_p counts as having reached it.
_REACHED = 1e-6


@dataclass(frozen=True)
class SamplingParams:
    """How one request picks its tokens. ValueError names a setting that is out of range.

    temperature: 0 is greedy. top_k: only the k likeliest tokens; 0 is no limit. top_p: only the smallest set of
    likeliest tokens that together reach this probability, but at least one. seed: of the request's own random numbers;
    without one they differ each time. min_p: only tokens at least this share as likely as the likeliest one.
    penalties: changes of the logits by the text so far, which the engine makes before all of these.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    min_p: float = 0.0
    penalties: Penalties | None = None

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature must be a finite number of at least 0, got {self.temperature!r}")
        for name in ("top_p", "min_p"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
        if not _is_integer(self.top_k) or self.top_k < 0:
            raise ValueError(f"top_k must be an integer of at least 0 (0: no limit), got {self.top_k!r}")
        if self.seed is not None and not _is_integer(self.seed):
            raise ValueError(f"seed must be an integer or None, got {self.seed!r}")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def generator(self) -> random.Random:
        """The source of the request's random numbers. Use one for the whole answer."""
        return random.Random(self.seed)


def processed_probs(logits: Tensor, params: SamplingParams) -> Tensor:
    """The distribution that `params` makes of logits [..., vocab], in their dtype but at least float32.

    Temperature comes first, then min-p, then top-k, then top-p over what top-k left. Greedy puts all probability on the
    largest logit; among equal ones, on the lowest id. ValueError if a row has no finite largest logit.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest, first = logits.max(dim=-1, keepdim=True)
    if not torch.isfinite(largest).all():
        raise ValueError("logits hold NaN or inf, or nothing but -inf: there is no distribution to draw from")
    if params.greedy:
        first = (logits == largest).int().argmax(dim=-1, keepdim=True)
        return torch.zeros_like(logits).scatter_(-1, first, 1.0)
    temperature = max(params.temperature, torch.finfo(logits.dtype).tiny)  # smaller ones would be 0 in this dtype
    scaled = (logits - largest) / temperature  # at most 0, so nothing overflows
    if params.min_p:
        scaled = scaled.masked_fill(scaled < math.log(params.min_p), -math.inf)
    if params.top_k == 0 and params.top_p == 1.0:
        return scaled.softmax(dim=-1)
    scaled, ids = scaled.sort(dim=-1, descending=True, stable=True)
    if params.top_k:
        scaled[..., params.top_k :] = -math.inf
    probs = scaled.softmax(dim=-1)
    before = probs.double().cumsum(dim=-1) - probs  # sum of the probabilities of likelier tokens
    before[..., 0] = -math.inf  # the likeliest token always stays
    kept = torch.where(before < params.top_p - _REACHED, probs, 0.0) if params.top_p < 1.0 else probs
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter_(-1, ids, kept)


def sample(probs: Tensor, u: Tensor | float) -> Tensor:
    """Token ids [...] drawn from probs [..., vocab]: the first id at which the cumulative sum exceeds u in [0, 1).

    A token of probability 0 is never drawn, whatever the rounding. ValueError for u outside [0, 1) and empty rows.
    """
    u = torch.as_tensor(u, dtype=torch.float64, device=probs.device)
    if not ((u >= 0) & (u < 1)).all():
        raise ValueError(f"u must lie in [0, 1), got {u.tolist()}")
    cumulative = probs.double().cumsum(dim=-1)
    total = cumulative[..., -1]
    if not (torch.isfinite(total) & (total > 0)).all():
        raise ValueError("probabilities must be finite and not all zero")
    point = torch.minimum(u * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, point.unsqueeze(-1), right=True).squeeze(-1)


def next_token(logits: Tensor, params: SamplingParams, numbers: random.Random) -> int:
    """One token from logits [vocab]. Greedy needs no random number and one pass over the logits."""
    if params.greedy:
        token = int(logits.argmax())
        if not torch.isfinite(logits[token]):  # argmax takes NaN for the largest
            raise ValueError("logits must be finite where they are largest")
        return token
    return int(sample(processed_probs(logits, params), numbers.random()))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
