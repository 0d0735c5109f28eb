"""What is trained, for how long, with what: every number of the course's pair in one place.

The target is deep and narrow and the draft one layer: at batch 1 a pass costs its layers, not its parameters, so only a
difference in depth makes a draft cheap. `TINY` runs in a second, for tests and for a first look.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from reference_impl.config import ModelConfig

VOCAB = 2048


@dataclass(frozen=True)
class Recipe:
    """One model's training run. Tokens a step: n_windows · window."""

    config: ModelConfig
    steps: int
    n_windows: int = 4  # a step
    window: int = 512  # tokens
    short: int = 256  # attention reaches this far at first, which is cheaper, ...
    long_from: float = 0.85  # ... and over the whole window from this share of the steps on
    matrix_lr: float = 0.02  # Muon: hidden matrices
    other_lr: float = 3e-3  # AdamW: embeddings, norms
    warmup: int = 50  # steps
    decay_from: float = 0.4  # from this share of the steps on, rates fall linearly to 0
    seed: int = 0

    @property
    def tokens(self) -> int:
        return self.steps * self.n_windows * self.window

    def context(self, step: int) -> int:
        return self.window if step >= self.long_from * self.steps else self.short

    def rate(self, step: int) -> float:
        """The share of the full learning rate at a step, 0 to 1."""
        rising = (step + 1) / (self.warmup + 1)
        falling = (self.steps - step) / (self.steps * (1 - self.decay_from))
        return min(1.0, rising, falling)

    def described(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Pair:
    """A target and its draft; the draft is distilled: it learns the target's distributions, not the text."""

    target: Recipe
    draft: Recipe
    vocab_size: int = VOCAB


def _shape(name: str, n_layers: int, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, vocab: int) -> ModelConfig:
    head_dim = d_model // n_heads
    return ModelConfig(name, n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, vocab, tied=True, max_context=512)


COURSE = Pair(
    target=Recipe(_shape("course-target", 12, 128, 4, 2, 384, VOCAB), steps=1500),
    draft=Recipe(_shape("course-draft", 1, 256, 8, 2, 768, VOCAB), steps=800, seed=1),
)

TINY = Pair(
    target=Recipe(_shape("course-target", 2, 32, 2, 1, 64, 320), 12, n_windows=2, window=32, short=16, warmup=2),
    draft=Recipe(_shape("course-draft", 1, 32, 2, 1, 64, 320), 8, n_windows=2, window=32, short=16, warmup=2, seed=1),
    vocab_size=320,
)
