"""Quantizes a model layer by layer: runs calibration text up to a layer, quantizes it, goes on with its new outputs.

So each layer is calibrated with the inputs that it will really get, errors of earlier layers included, and memory never
holds the statistics of more than one layer. Only the four linear layers of each decoder layer are quantized;
embeddings, output head and norms stay as they are. An interrupted run goes on after its last layer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from reference_impl.cache.recompute import Recompute
from reference_impl.common.errors import WeightsError
from reference_impl.common.files import written_whole
from reference_impl.model.llama import Layer, Linear, Llama
from reference_impl.quantization.awq import Inputs, scale_layer
from reference_impl.quantization.forward import PASS_TOKENS, advance, enter, packed
from reference_impl.quantization.gptq import gptq
from reference_impl.quantization.rounding import quantize
from reference_impl.quantization.weight import QuantizedWeight

LINEARS = ("wqkv", "wo", "w_gate_up", "w_down")
METHODS = ("rounding", "gptq", "awq")
Place = Callable[[int, str, QuantizedWeight], None]  # (layer, name of the linear layer, its weight)


@dataclass(frozen=True)
class Recipe:
    """How to quantize: method and grid. `damping` and `act_order` are for GPTQ, `steps` (ratios to try) for AWQ."""

    method: str
    bits: int
    group_size: int | None
    symmetric: bool = True
    scale_dtype: str = "float16"
    damping: float = 0.01
    act_order: bool = False
    steps: int = 20

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        if not hasattr(torch, self.scale_dtype):
            raise ValueError(f"scale_dtype must be float32, float16 or bfloat16, got {self.scale_dtype!r}")

    def rounded(self, weight: Tensor) -> QuantizedWeight:
        """Plain rounding on this recipe's grid."""
        return quantize(weight, self.bits, self.group_size, symmetric=self.symmetric, scale_dtype=self._dtype)

    def with_hessian(self, weight: Tensor, hessian: Tensor) -> QuantizedWeight:
        """GPTQ on this recipe's grid."""
        return gptq(
            weight,
            hessian,
            self.bits,
            self.group_size,
            symmetric=self.symmetric,
            scale_dtype=self._dtype,
            damping=self.damping,
            act_order=self.act_order,
        )

    @property
    def _dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.scale_dtype)
        return dtype


@torch.no_grad()
def quantize_layers(
    model: Llama,
    recipe: Recipe,
    sequences: Sequence[Sequence[int]] = (),
    *,
    folder: Path | None = None,
    place: Place | None = None,
    progress: bool = True,
    pass_tokens: int = PASS_TOKENS,
) -> dict[str, QuantizedWeight]:
    """Quantizes `model` in place, and returns the weights by name, "layers.0.wqkv" to "layers.29.w_down".

    sequences: token ids to calibrate with, which GPTQ and AWQ need; the same ids give the same result. At most
    `pass_tokens` of them are run at a time (a longer sequence alone). Afterwards the linear layers hold ŵ in the
    model's dtype, and AWQ's factors are in the norms.

    place: called for each quantized weight to put it into the model instead, for example into a module that computes
    with it. Then nothing is kept here and the result is empty.

    folder: where finished layers are kept, each file written whole or not at all. A later call with the same model,
    recipe and text goes on from there; with another one it is a ValueError. WeightsError for a damaged file there.
    """
    if recipe.method != "rounding" and not sequences:
        raise ValueError(f"{recipe.method} needs text to calibrate with")
    if folder is not None:
        _open_folder(folder, _fingerprint(model, recipe, sequences))
    passes = packed(sequences, pass_tokens) if recipe.method != "rounding" else []
    states = [(batch, enter(model, batch)) for batch in passes]
    found: dict[str, QuantizedWeight] = {}
    label = f"{recipe.method}, {recipe.bits} bits, group {recipe.group_size or 'row'}"
    for i in tqdm(range(model.config.n_layers), desc=label, unit="layer", disable=not progress, leave=False):
        layer = model.layers[i]
        assert isinstance(layer, Layer)
        path = None if folder is None else folder / f"layer-{i:03d}.safetensors"
        if path is not None and path.is_file():
            weights = _load_layer(path, layer, recipe)
        else:
            inputs = observe(model, i, states) if states else {}
            weights = _quantize_layer(layer, model, recipe, inputs)
            if path is not None:
                _save_layer(path, layer, weights)
        for name in LINEARS:
            if place is None:
                getattr(layer, name).weight.copy_(weights[name].dequantize())
                found[f"layers.{i}.{name}"] = weights[name]
            else:
                place(i, name, weights[name])
        if i + 1 < model.config.n_layers:
            states = [(batch, advance(model, i, batch, x)) for batch, x in states]
    return found


def observe(model: Llama, i: int, states: Sequence[tuple[Recompute, Tensor]]) -> dict[str, Inputs]:
    """The inputs of each linear layer of decoder layer `i` over all passes, each given with the rows that enter it."""
    sums: dict[str, Inputs] = {}
    n_rows = 0

    def add(name: str, module: Linear, arguments: tuple[Tensor, ...]) -> None:
        x = arguments[0]
        hessian, size = (x.T @ x).double(), x.abs().sum(0, dtype=torch.float64)
        if name in sums:
            hessian, size = sums[name].hessian.add_(hessian), sums[name].size.add_(size)
        sums[name] = Inputs(hessian, size)

    layer = model.layers[i]
    hooks = [getattr(layer, name).register_forward_pre_hook(partial(add, name)) for name in LINEARS]
    try:
        for batch, x in states:
            advance(model, i, batch, x)
            n_rows += x.shape[0]
    finally:
        for hook in hooks:
            hook.remove()
    return {name: Inputs(found.hessian / n_rows, found.size / n_rows) for name, found in sums.items()}


def calibration_inputs(model: Llama, sequences: Sequence[Sequence[int]], layer: int) -> dict[str, Inputs]:
    """The inputs of one decoder layer's linear layers in the float model, for experiments with one layer."""
    if not 0 <= layer < model.config.n_layers:
        raise ValueError(f"the model has layers 0 to {model.config.n_layers - 1}, got {layer}")
    with torch.no_grad():
        states = [(batch, enter(model, batch)) for batch in packed(sequences)]
        for i in range(layer):
            states = [(batch, advance(model, i, batch, x)) for batch, x in states]
        return observe(model, layer, states)


def _quantize_layer(
    layer: Layer, model: Llama, recipe: Recipe, inputs: dict[str, Inputs]
) -> dict[str, QuantizedWeight]:
    if recipe.method == "awq":
        scale_layer(layer, model.config, inputs, lambda w: recipe.rounded(w).dequantize(w.dtype), recipe.steps)
    matrices = {name: getattr(layer, name).weight for name in LINEARS}
    if recipe.method == "gptq":
        return {name: recipe.with_hessian(matrix, inputs[name].hessian) for name, matrix in matrices.items()}
    return {name: recipe.rounded(matrix) for name, matrix in matrices.items()}


def _fingerprint(model: Llama, recipe: Recipe, sequences: Sequence[Sequence[int]]) -> dict[str, str]:
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    text = hashlib.sha256(json.dumps([list(map(int, s)) for s in sequences]).encode())
    return {"recipe": json.dumps(asdict(recipe)), "model": digest.hexdigest(), "text": text.hexdigest()}


def _open_folder(folder: Path, fingerprint: dict[str, str]) -> None:
    """Makes the folder, or checks that it belongs to this very run."""
    path = folder / "run.json"
    if path.is_file():
        try:
            earlier = json.loads(path.read_text())
        except ValueError:
            raise WeightsError(f"{path}: expected what the run in this folder was about; it is damaged") from None
        differs = [key for key in fingerprint if earlier.get(key) != fingerprint[key]]
        if differs:
            raise ValueError(f"{folder}: holds a run with another {' and '.join(differs)}; take another folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(json.dumps(fingerprint))


def _kept(layer: Layer) -> dict[str, Tensor]:
    """Tensors that AWQ changes beside the linear weights."""
    kept: dict[str, Tensor] = {"attn_norm": layer.attn_norm, "mlp_norm": layer.mlp_norm}
    return kept if layer.wqkv.bias is None else kept | {"wqkv.bias": layer.wqkv.bias}


def _save_layer(path: Path, layer: Layer, weights: dict[str, QuantizedWeight]) -> None:
    tensors = {name: value.detach().cpu().clone() for name, value in _kept(layer).items()}
    for name, weight in weights.items():
        tensors[f"{name}.q"], tensors[f"{name}.scales"] = weight.q.cpu().contiguous(), weight.scales.cpu().contiguous()
        if weight.zeros is not None:
            tensors[f"{name}.zeros"] = weight.zeros.cpu().contiguous()
    with written_whole(path) as part:
        save_file(tensors, part)


def _load_layer(path: Path, layer: Layer, recipe: Recipe) -> dict[str, QuantizedWeight]:
    try:
        tensors = load_file(path, device=str(layer.attn_norm.device))
        for name, value in _kept(layer).items():
            value.copy_(tensors[name])
        found = {}
        for name in LINEARS:
            q, scales, zeros = (tensors.get(f"{name}.{part}") for part in ("q", "scales", "zeros"))
            if q is None or scales is None or q.shape != getattr(layer, name).weight.shape:
                raise ValueError(f"{name} is missing or has another shape")
            width = q.shape[1] if recipe.group_size is None else min(recipe.group_size, q.shape[1])
            found[name] = QuantizedWeight(q, scales, zeros, recipe.bits, width)
        return found
    except (SafetensorError, OSError, KeyError, ValueError, RuntimeError) as error:
        raise WeightsError(
            f"{path}: expected a whole quantized layer ({error}); delete it to compute it anew"
        ) from None
