"""Stretches RoPE's wavelengths, so that a model reads longer texts than it was first trained with.

Linear: Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation". YaRN: Peng
et al. 2023, sections 3.2 and 3.4. Llama 3.1: Grattafiori et al. 2024. The details follow `transformers`, since that is
what checkpoints are written for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.bounds.rope_scaling import LinearScaling, Llama3Scaling, YarnScaling


def stretched(frequencies: Tensor, config: ModelConfig) -> Tensor:
    """The frequencies [head_dim / 2], in radians per token, as the model's scaling changes them."""
    scaling = config.rope_scaling
    match scaling:
        case None:
            return frequencies
        case LinearScaling(factor=factor):
            return frequencies / factor
        case Llama3Scaling():
            keep = _kept_by_llama3(frequencies, scaling)
        case YarnScaling():
            keep = _kept_by_yarn(config, scaling)
    return (1 - keep) * frequencies / scaling.factor + keep * frequencies


def attention_factor(config: ModelConfig) -> float:
    """What queries and keys are both multiplied with, which sharpens attention over long texts."""
    return config.rope_scaling.attention_factor if isinstance(config.rope_scaling, YarnScaling) else 1.0


def _kept_by_llama3(frequencies: Tensor, scaling: Llama3Scaling) -> Tensor:
    """1 for wavelengths that fit the original context often enough, 0 for long ones, between the bounds a ramp."""
    turns = scaling.original_context / (2 * math.pi / frequencies)  # of each pair in the original context
    keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    return keep.clamp(0.0, 1.0)


def _kept_by_yarn(config: ModelConfig, scaling: YarnScaling) -> Tensor:
    """1 for pairs that turn more than `beta_fast` times, 0 for fewer than `beta_slow`, between them a ramp."""

    def pair_that_turns(times: float) -> float:
        wavelength = scaling.original_context / times
        return config.head_dim * math.log(wavelength / (2 * math.pi)) / (2 * math.log(config.rope_theta))

    low = max(math.floor(pair_that_turns(scaling.beta_fast)), 0)
    high: float = min(math.ceil(pair_that_turns(scaling.beta_slow)), config.head_dim - 1)
    if low == high:
        high += 0.001
    pairs = torch.arange(config.head_dim // 2, dtype=torch.float32)
    return 1 - ((pairs - low) / (high - low)).clamp(0.0, 1.0)
