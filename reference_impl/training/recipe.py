"""Every number of the course's pair: which models are trained, on how much text, with which settings.

The target is deep and narrow and the draft has one layer: at batch 1 on a CPU the time of a pass depends on its layers,
not its parameters, so only a difference in depth makes a draft cheap. `TINY` runs in a second, for tests and a first
look.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from reference_impl.bounds.config import ModelConfig

VOCAB = 2048


@dataclass(frozen=True)
class Recipe:
    """One model's training run. A step has n_windows · window tokens."""

    config: ModelConfig
    steps: int
    n_windows: int = 4  # a step
    window: int = 512  # tokens
    short: int = 256  # how far attention reaches at first, which is cheaper
    long_from: float = 0.85  # share of the steps after which it reaches over the whole window
    matrix_lr: float = 0.02  # Muon: hidden matrices
    other_lr: float = 3e-3  # AdamW: embeddings, norms
    rates: tuple[tuple[int, float], ...] = ((0, 0.02), (50, 1.0))  # (step, share of the rates); linear in between
    seed: int = 0

    @property
    def tokens(self) -> int:
        return self.steps * self.n_windows * self.window

    def context(self, step: int) -> int:
        return self.window if step >= self.long_from * self.steps else self.short

    def rate(self, step: int) -> float:
        """The share of the full learning rates at a step, 0 to 1."""
        for (start, before), (end, after) in pairwise(self.rates):
            if start <= step <= end:
                return before + (after - before) * (step - start) / (end - start)
        return self.rates[-1][1]

    def described(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Pair:
    """A target and its draft. The draft is distilled: it learns the target's distributions, not the text.

    It starts as the target's embeddings, first layer and last norm, so it has the target's width.
    """

    target: Recipe
    draft: Recipe
    vocab_size: int = VOCAB


def _shape(name: str, n_layers: int, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, vocab: int) -> ModelConfig:
    head_dim = d_model // n_heads
    return ModelConfig(name, n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, vocab, tied=True, max_context=512)


# The rates stay full for the first part of a run and fall to 0 by its end.
COURSE = Pair(
    target=Recipe(
        _shape("course-target", 12, 128, 4, 2, 384, VOCAB),
        steps=1000,
        rates=((0, 1 / 51), (50, 1.0), (600, 1.0), (800, 7 / 9), (1000, 0.0)),
    ),
    draft=Recipe(
        _shape("course-draft", 1, 128, 4, 2, 384, VOCAB),
        steps=440,
        n_windows=2,
        other_lr=2e-3,
        rates=((0, 1 / 31), (30, 1.0), (200, 1.0), (440, 0.0)),
        seed=1,
    ),
)

TINY_RATES = ((0, 0.5), (2, 1.0), (12, 0.0))
TINY = Pair(
    target=Recipe(
        _shape("course-target", 2, 32, 2, 1, 64, 320), 12, n_windows=2, window=32, short=16, rates=TINY_RATES
    ),
    draft=Recipe(
        _shape("course-draft", 1, 32, 2, 1, 64, 320), 8, n_windows=2, window=32, short=16, rates=TINY_RATES, seed=1
    ),
    vocab_size=320,
)
