"""A whole model with quantized matrices, and the list of which parts are quantized.

The four linear layers of every decoder layer always are. The output head is too, unless asked otherwise: at batch 1 a
step reads it as a whole like every other matrix (a fifth of SmolLM2's weights). The input embedding never is, since a
step reads one row of it; a tied head becomes a matrix of its own, and the float table stays for the look-up. Norms and
biases stay as they are. Layers are replaced one after the other, so memory never holds more than the float model and
one layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reference_impl.model.llama import Layer, Linear, Llama
from reference_impl.quantization.calibrate import LINEARS, Recipe, quantize_layers
from reference_impl.quantization.linear import QuantizedLinear
from reference_impl.quantization.rounding import quantize
from reference_impl.quantization.weight import QuantizedWeight


@dataclass(frozen=True)
class Part:
    """A weight of the model and how it is stored; `bits` and `group_size` are None for floats."""

    name: str
    shape: tuple[int, ...]
    bits: int | None
    group_size: int | None
    n_bytes: int


def quantize_model(
    model: Llama,
    bits: int = 8,
    group_size: int | None = 128,
    *,
    recipe: Recipe | None = None,
    sequences: Sequence[Sequence[int]] = (),
    head: bool = True,
    progress: bool = False,
) -> Llama:
    """Quantizes `model` in place and returns it; it keeps its dtype for norms, embedding and cache.

    By rounding, or by `recipe` (which then says bits and group size), for GPTQ and AWQ with calibration `sequences`.
    `head`: the output head too, always by rounding. ValueError for a model that is quantized already or split over
    ranks.
    """
    recipe = recipe or Recipe("rounding", bits, group_size)
    for layer in model.layers:
        for name in LINEARS:
            kind = type(getattr(layer, name))
            if kind is not Linear:
                raise ValueError(f"expected a float model in one process, but {name} is a {kind.__name__}")

    def place(i: int, name: str, weight: QuantizedWeight) -> None:
        layer = model.layers[i]
        setattr(layer, name, QuantizedLinear(weight, getattr(layer, name).bias))

    quantize_layers(model, recipe, sequences, place=place, progress=progress)
    if head:
        model.register_module("head", QuantizedLinear(rounded(model.head.weight, recipe)))
    return model


def rounded(weight: Tensor, recipe: Recipe) -> QuantizedWeight:
    """A matrix on the recipe's grid, by rounding."""
    scale_dtype: torch.dtype = getattr(torch, recipe.scale_dtype)
    return quantize(weight, recipe.bits, recipe.group_size, symmetric=recipe.symmetric, scale_dtype=scale_dtype)


def parts(model: Llama) -> list[Part]:
    """Every weight of the model, in order. A tied head that is still the embedding is not listed again."""
    found = [_float("embed", model.embed)]
    for i, layer in enumerate(model.layers):
        assert isinstance(layer, Layer)
        prefix = f"layers.{i}."
        found.append(_float(f"{prefix}attn_norm", layer.attn_norm))
        found += _linear(f"{prefix}wqkv", layer.wqkv)
        qk = (("q_norm", layer.q_norm), ("k_norm", layer.k_norm))
        found += [_float(prefix + name, weight) for name, weight in qk if weight is not None]
        found += _linear(f"{prefix}wo", layer.wo)
        found.append(_float(f"{prefix}mlp_norm", layer.mlp_norm))
        found += _linear(f"{prefix}w_gate_up", layer.w_gate_up) + _linear(f"{prefix}w_down", layer.w_down)
    found.append(_float("norm", model.norm))
    if isinstance(model.head, QuantizedLinear) or model.head.weight is not model.embed:
        found += _linear("head", model.head)
    return found


def bytes_read_per_step(model: Llama) -> int:
    """Bytes of weights that a decode step must read: all but the embedding table, unless that is the head too."""
    weights = sum(part.n_bytes for part in parts(model) if part.name != "embed")
    tied = not isinstance(model.head, QuantizedLinear) and model.head.weight is model.embed
    return weights + (model.embed.numel() * model.embed.element_size() if tied else 0)


def _linear(name: str, module: nn.Module) -> list[Part]:
    bias = getattr(module, "bias", None)
    biases = [] if bias is None else [_float(f"{name}.bias", bias)]
    if isinstance(module, QuantizedLinear):
        return [Part(name, module.shape, module.bits, module.group_size, module.packed.n_bytes), *biases]
    weight = module.weight
    assert isinstance(weight, Tensor)
    return [_float(name, weight), *biases]


def _float(name: str, weight: Tensor) -> Part:
    return Part(name, tuple(weight.shape), None, None, weight.numel() * weight.element_size())
