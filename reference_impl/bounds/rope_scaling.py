"""How a model's RoPE is stretched beyond the context that it was first trained with. `model.rope_scaling` does it.

Standard library only.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Llama3Scaling:
    """Stretches only wavelengths that are long beside `original_context` tokens (`rope_type: llama3`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int


@dataclass(frozen=True)
class LinearScaling:
    """Divides every position by `factor` (`rope_type: linear`)."""

    factor: float


@dataclass(frozen=True)
class YarnScaling:
    """Stretches pairs that turn fewer than `beta_fast` times in `original_context` tokens (`rope_type: yarn`).

    Pairs that turn fewer than `beta_slow` times are stretched by `factor`, those between by less. Queries and keys both
    grow by `attention_factor`.
    """

    factor: float
    original_context: int
    attention_factor: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0


RopeScaling = Llama3Scaling | LinearScaling | YarnScaling
