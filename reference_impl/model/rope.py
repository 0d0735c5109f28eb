"""RoPE's angles: how far each position turns a query or key, with Llama 3's stretching of long wavelengths.

Su et al. 2021: each pair of dimensions turns by a fixed angle per token, so a score depends only on the distance
between two tokens. `kernels.rotate` does the turning.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig


def rope_tables(config: ModelConfig, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """cos and sin [max_context, head_dim] for `kernels.rotate`, in float32.

    Angles are products of a position and a frequency in float32, as the models were trained; in bfloat16 a position
    beyond 256 could not even be written down. The first half of each sine row carries the rotation's minus sign.
    """
    angles = torch.outer(torch.arange(config.max_context, dtype=torch.float32), rope_frequencies(config))
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1).to(device), torch.cat((-sin, sin), dim=-1).to(device)


def rope_frequencies(config: ModelConfig) -> Tensor:
    """Radians per token for each of the head_dim / 2 pairs, float32, with Llama 3's stretching where the model has it.

    Llama 3.1 (Grattafiori et al. 2024): wavelengths that fit the original context often enough stay; long ones are
    divided by `factor`; between the two bounds the frequency is interpolated.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / (config.rope_theta**exponents)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    wavelengths = 2 * math.pi / frequencies  # in tokens
    turns = scaling.original_context / wavelengths
    keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    keep = keep.clamp(0.0, 1.0)
    return (1 - keep) * frequencies / scaling.factor + keep * frequencies
