"""Changes logits by what a request's text holds already, and by the request's own wishes for single tokens.

Presence and frequency penalties: OpenAI's API reference, "Frequency and presence penalties". Repetition penalty: Keskar
et al. 2019 (CTRL), section 4.1, over prompt and answer. All depend on the request's own tokens alone, so the requests
that share a batch never change each other's answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Penalties:
    """What one request asks for. ValueError names a setting that is out of range.

    presence: taken off each logit whose token the answer holds; frequency: as often as it holds it. repetition: divides
    positive logits of tokens in prompt or answer and multiplies negative ones. bias: added to the logits of these ids.
    """

    presence: float = 0.0
    frequency: float = 0.0
    repetition: float = 1.0
    bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("presence", "frequency"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"the {name} penalty must be a finite number, got {getattr(self, name)}")
        if not 0 < self.repetition < math.inf:
            raise ValueError(f"the repetition penalty must be a number above 0, got {self.repetition}")
        for token, value in self.bias:
            if not math.isfinite(value):
                raise ValueError(f"the bias of token {token} must be a finite number, got {value}")


def penalize(logits: Tensor, row: int, wanted: Penalties, prompt: Sequence[int], answer: Sequence[int]) -> None:
    """Changes one row of logits [n_rows, vocabulary] in place, for the token that follows prompt and answer.

    Bias comes first, then the repetition penalty, then the other two.
    """
    values = logits[row]
    if wanted.bias:
        values.index_add_(0, *_columns(dict(wanted.bias), values))
    if wanted.repetition != 1.0:
        seen = torch.tensor(sorted({*prompt, *answer}), dtype=torch.int64, device=logits.device)
        found = values[seen]
        values[seen] = torch.where(found > 0, found / wanted.repetition, found * wanted.repetition)
    if answer and (wanted.presence or wanted.frequency):
        off = {token: -wanted.presence - n * wanted.frequency for token, n in Counter(answer).items()}
        values.index_add_(0, *_columns(off, values))


def _columns(changes: dict[int, float], values: Tensor) -> tuple[Tensor, Tensor]:
    ids = torch.tensor(list(changes), dtype=torch.int64, device=values.device)
    return ids, torch.tensor(list(changes.values()), dtype=values.dtype, device=values.device)
