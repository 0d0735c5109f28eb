"""AWQ: before rounding, scale up the weights that meet large inputs, and scale down the inputs to match.

If column j of W is multiplied by s_j and input j divided by it, the layer computes the same, but that column's rounding
error counts only 1/s_j. Dividing the inputs is free: the factor goes into whatever makes them, which is the gain of the
norm before the layer, or the rows of the linear layer before it. s_j = (mean |x_j|)^ratio, and the ratio is the best of
20. Lin et al. 2024, "AWQ", section 3 (without its search for a clipping range).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.model.llama import Layer

_ROWS = 512  # rows of a matrix that are enough to compare two ratios
Round = Callable[[Tensor], Tensor]  # W [rows, columns] -> Ŵ, its values in the chosen format


@dataclass(frozen=True)
class Inputs:
    """What calibration keeps of a linear layer's inputs x: `hessian` = mean of x xᵀ, `size` = mean of |x|."""

    hessian: Tensor  # float64 [columns, columns]
    size: Tensor  # float64 [columns]


def search(weight: Tensor, inputs: Inputs, rounded: Round, steps: int = 20) -> tuple[Tensor, float]:
    """(s float32 [columns], ratio): the ratio of 0, 1/steps, ... below 1 whose rounded layer errs least.

    weight [rows, columns]: all linear layers that share the input, one below the other. The error is that of the
    outputs over the calibration inputs, at every n-th row so that 512 to 1,023 remain. Ratio 0 means s = 1, plain
    rounding, and wins ties.
    """
    weight = weight[:: max(weight.shape[0] // _ROWS, 1)]
    hessian = inputs.hessian.to(weight.dtype)
    size = inputs.size.clamp(min=1e-4 * float(inputs.size.max()) or 1.0)  # so an input that is always 0 does not matter
    best, best_error, best_ratio = torch.ones_like(size), float("inf"), 0.0
    for step in range(steps):
        scale = size ** (step / steps)
        scale = scale / (scale.max() * scale.min()).sqrt()
        s = scale.to(weight.dtype)
        difference = weight - rounded(weight * s) / s
        error = float(((difference @ hessian) * difference).sum(dtype=torch.float64))
        if error < best_error:
            best, best_error, best_ratio = scale, error, step / steps
    return best.float(), best_ratio


@torch.no_grad()
def fold_into_norm(gain: Tensor, linear: Tensor, s: Tensor) -> None:
    """gain [columns] /= s and linear [rows, columns] *= s, in place: RMSNorm multiplies by its gain last."""
    gain.div_(s.to(gain.dtype))
    linear.mul_(s.to(linear.dtype))


@torch.no_grad()
def fold_into_rows(before: Tensor, linear: Tensor, s: Tensor) -> None:
    """before [columns, n] /= s row by row and linear [rows, columns] *= s, in place: `before` makes linear's input.

    This is right only if the input is linear in `before`: v for the output projection, up for the down projection.
    Through the gate of SwiGLU it would change the model, as silu(g / s) is not silu(g) / s.
    """
    before.div_(s.to(before.dtype)[:, None])
    linear.mul_(s.to(linear.dtype))


@torch.no_grad()
def scale_layer(
    layer: Layer, config: ModelConfig, inputs: dict[str, Inputs], rounded: Round, steps: int = 20
) -> dict[str, float]:
    """Searches and folds for the four inputs of a decoder layer, in place. The layer still computes the same.

    inputs: by name of the linear layer (`LINEARS`). Returns the ratios found. `wo` is left out where query heads share
    value heads: one row of v then makes several inputs of wo, which would have to agree on one s.
    """
    gate_up = layer.w_gate_up.weight
    up = gate_up[config.d_ff :]
    q_and_k = (config.n_heads + config.n_kv_heads) * config.head_dim
    ratios = {}
    # The last input comes first: folding divides rows of an earlier matrix, which must be scaled and rounded later.
    s, ratios["w_down"] = search(layer.w_down.weight, inputs["w_down"], rounded, steps)
    fold_into_rows(up, layer.w_down.weight, s)
    s, ratios["w_gate_up"] = search(gate_up, inputs["w_gate_up"], rounded, steps)
    fold_into_norm(layer.mlp_norm, gate_up, s)
    if config.n_heads == config.n_kv_heads:
        s, ratios["wo"] = search(layer.wo.weight, inputs["wo"], rounded, steps)
        fold_into_rows(layer.wqkv.weight[q_and_k:], layer.wo.weight, s)
        if layer.wqkv.bias is not None:
            layer.wqkv.bias[q_and_k:].div_(s.to(layer.wqkv.bias.dtype))
    s, ratios["wqkv"] = search(layer.wqkv.weight, inputs["wqkv"], rounded, steps)
    fold_into_norm(layer.attn_norm, layer.wqkv.weight, s)
    return ratios
