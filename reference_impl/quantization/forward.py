"""A forward pass in parts: several texts packed into one pass, and the residual stream handed from layer to layer.

`Llama.forward` runs without a stop. Calibration must stop at every layer, and evaluation before the output head.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from reference_impl import kernels
from reference_impl.cache.recompute import Recompute
from reference_impl.model.llama import Llama

PASS_TOKENS = 1024  # rows at a time: enough for fast matrix products, and little memory

Tokens = Sequence[int]


def packed(sequences: Sequence[Tokens], most: int = PASS_TOKENS) -> list[Recompute]:
    """Sequences packed in order into passes of at most `most` tokens; a longer sequence has a pass of its own."""
    together: list[list[Tokens]] = []
    for sequence in sequences:
        if not together or sum(map(len, together[-1])) + len(sequence) > most:
            together.append([])
        together[-1].append(sequence)
    return [Recompute(*some) for some in together]


def enter(model: Llama, batch: Recompute) -> Tensor:
    """The rows [n, d_model] that enter the first layer."""
    x = model.embedded(batch.tokens.to(model.embed.device))
    return x.float() if x.is_cpu and x.dtype is torch.bfloat16 else x  # as in the model's own forward pass


def advance(model: Llama, i: int, batch: Recompute, x: Tensor) -> Tensor:
    """The rows that leave decoder layer `i`, from those that enter it."""
    cos = model.cos[batch.positions].unsqueeze(1).to(x.dtype)
    sin = model.sin[batch.positions].unsqueeze(1).to(x.dtype)
    out: Tensor = model.layers[i](x, batch, i, cos, sin)
    return out


@torch.no_grad()
def hidden_states(model: Llama, sequences: Sequence[Tokens], most: int = PASS_TOKENS) -> list[Tensor]:
    """What the output head reads: [tokens, d_model] for each sequence."""
    states: list[Tensor] = []
    for batch in packed(sequences, most):
        x = enter(model, batch)
        for i in range(model.config.n_layers):
            x = advance(model, i, batch, x)
        states += kernels.rms_norm(x, model.norm, model.config.norm_eps).split(batch.lengths)
    return states
