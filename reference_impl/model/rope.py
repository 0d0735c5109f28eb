"""RoPE's angles: how far each position turns a query or key.

Su et al. 2021: each pair of dimensions turns by a fixed angle a token, so that a score depends on the distance between
two tokens. `kernels.rotate` does the turning; `rope_scaling` stretches the wavelengths for longer texts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.model.rope_scaling import attention_factor, stretched


def rope_tables(config: ModelConfig, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """cos and sin [max_context, head_dim] for `kernels.rotate`, in float32.

    Angles are products of a position and a frequency in float32, as the models were trained; in bfloat16 a position
    beyond 256 could not even be written down. The first half of each sine row carries the rotation's minus sign.
    """
    angles = torch.outer(torch.arange(config.max_context, dtype=torch.float32), rope_frequencies(config))
    cos, sin = angles.cos() * attention_factor(config), angles.sin() * attention_factor(config)
    return torch.cat((cos, cos), dim=-1).to(device), torch.cat((-sin, sin), dim=-1).to(device)


def rope_frequencies(config: ModelConfig) -> Tensor:
    """Radians per token for each of the head_dim / 2 pairs, float32, stretched as the model asks."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    return stretched(1.0 / (config.rope_theta**exponents), config)
