"""Reads checkpoints that others have quantized: GPTQ, AWQ, and compressed-tensors with weights alone.

All three store (q - zero) * scale for groups along a matrix's inputs, as `QuantizedWeight` does; they differ in how
they pack integers into 32-bit words. So reading one is unpacking, and nothing is rounded anew. Formats: AutoGPTQ and
GPTQModel (`qweight`, `qzeros`, `scales`, `g_idx`), AutoAWQ's GEMM version, and vLLM's compressed-tensors
(`weight_packed`, `weight_scale`, `weight_zero_point`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from reference_impl.checkpoints import folder
from reference_impl.checkpoints.huggingface import config_from_hf
from reference_impl.checkpoints.json_file import read_json
from reference_impl.checkpoints.shape import canonical, limited
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Linear, Llama
from reference_impl.model.rope import rope_tables
from reference_impl.quantization.linear import QuantizedLinear
from reference_impl.quantization.weight import QuantizedWeight

METHODS = ("gptq", "awq", "compressed-tensors")
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # which column each 4 bits of a word belong to, lowest first
FUSED = {
    "wqkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "wo": ("self_attn.o_proj",),
    "w_gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "w_down": ("mlp.down_proj",),
}
NORMS = {
    "attn_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
}


def method_of(path: Path) -> str | None:
    """The method that a folder's config.json names; None if it is none of METHODS."""
    settings = read_json(path / "config.json", missing={}).get("quantization_config")
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    return method if method in METHODS else None


@dataclass
class _Stored:
    """The tensors of a folder, each of which is taken once, and how its integers are packed."""

    path: Path
    tensors: dict[str, Tensor]
    unpack: Callable[[_Stored, str], QuantizedWeight]
    mark: str  # the tensor that a quantized matrix has and no other one
    settings: dict[str, Any]

    def take(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise WeightsError(f"{self.path}: expected a tensor {name}, found none")
        return self.tensors.pop(name)

    def linear(self, names: Sequence[str], shape: tuple[int, int], dtype: torch.dtype) -> Linear:
        """One layer of the matrices `names`, one below the other, quantized or in floats like the file's."""
        biases = [self.tensors.pop(f"{name}.bias", None) for name in names]
        given = [bias.to(dtype) for bias in biases if bias is not None]
        if given and len(given) < len(names):
            raise WeightsError(f"{self.path}: some of {', '.join(names)} have a bias and others none")
        bias = nn.Parameter(torch.cat(given), requires_grad=False) if given else None
        quantized = [f"{name}.{self.mark}" in self.tensors for name in names]
        if any(quantized) and not all(quantized):
            raise WeightsError(f"{self.path}: expected all of {', '.join(names)} quantized, or none")
        layer: Linear
        if all(quantized):
            layer = QuantizedLinear(_below([self._weight(name) for name in names]), bias)
        else:
            layer = Linear(shape[1], shape[0], False, dtype, "meta")
            matrices = [self.take(f"{name}.weight").to(dtype) for name in names]
            layer.weight, layer.bias = nn.Parameter(torch.cat(matrices), requires_grad=False), bias
        if tuple(layer.matrix.shape) != shape:
            raise WeightsError(f"{self.path}: expected {names[0]} in {list(shape)}, found {list(layer.matrix.shape)}")
        return layer

    def _weight(self, name: str) -> QuantizedWeight:
        try:
            return self.unpack(self, name)
        except (ValueError, RuntimeError, IndexError) as error:
            raise WeightsError(f"{self.path}: matrix {name}: {error}") from None


def load(
    path: Path, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu", max_context: int | None = None
) -> Llama:
    """The model; norms, biases and embedding in `dtype`. WeightsError names the folder and what is not built."""
    found = read_json(path / "config.json")
    settings = found.pop("quantization_config")
    config = config_from_hf(found, path)
    config = replace(config, tied=config.tied and not folder.has_head_of_its_own(path))
    unpack, mark = _format(settings, path)
    stored = _Stored(path, dict(folder.tensors(path, tied=config.tied)), unpack, mark, settings)
    model = Llama(limited(canonical(config), max_context), dtype, "meta")
    for i, layer in enumerate(model.layers):
        prefix = f"model.layers.{i}."
        for name, parts in FUSED.items():
            linear = layer.get_submodule(name)
            assert isinstance(linear, Linear)
            rows, columns = linear.matrix.shape
            made = stored.linear([prefix + part for part in parts], (rows, columns), dtype)
            if (made.bias is None) != (linear.bias is None):
                raise WeightsError(f"{path}: a bias of {prefix}{parts[0]} and config.json do not fit together")
            setattr(layer, name, made)
        for name, part in NORMS.items():
            if getattr(layer, name) is not None:
                setattr(layer, name, _parameter(stored.take(f"{prefix}{part}.weight"), dtype))
    model.embed = _parameter(stored.take(folder.EMBEDDING), dtype)
    model.norm = _parameter(stored.take("model.norm.weight"), dtype)
    if config.tied:
        model.head.weight = model.embed
    else:
        model.head = stored.linear(["lm_head"], (config.vocab_size, config.d_model), dtype)
    left = [name for name in stored.tensors if not name.endswith("rotary_emb.inv_freq")]
    if left:
        raise WeightsError(f"{path}: tensor {sorted(left)[0]} has no place in this model")
    model.cos, model.sin = (t.to(torch.promote_types(dtype, torch.float32)) for t in rope_tables(model.config))
    return model.to(device)


def _parameter(value: Tensor, dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter(value.to(dtype), requires_grad=False)


def _below(weights: Sequence[QuantizedWeight]) -> QuantizedWeight:
    """Matrices of one width below each other. ValueError if they are not quantized alike."""
    first = weights[0]
    if any((w.bits, w.group_size, w.shape[1]) != (first.bits, first.group_size, first.shape[1]) for w in weights):
        raise ValueError("it is quantized otherwise than those that it is computed with")
    zeros = None
    if any(w.zeros is not None for w in weights):
        zeros = torch.cat(
            [torch.zeros_like(w.scales, dtype=torch.int8) if w.zeros is None else w.zeros for w in weights]
        )
    q, scales = torch.cat([w.q for w in weights]), torch.cat([w.scales for w in weights])
    return QuantizedWeight(q, scales, zeros, first.bits, first.group_size)


def _format(settings: dict[str, Any], path: Path) -> tuple[Callable[[_Stored, str], QuantizedWeight], str]:
    """How matrices are unpacked, and the tensor by which one is known. WeightsError for what is not built."""

    def require(key: str, value: Any, *built: Any) -> None:
        if value not in built:
            expected = ", ".join(map(str, built))
            raise WeightsError(
                f"{path / 'config.json'}: expected {key} {expected}; found {value!r}, which is not built"
            )

    method = settings["quant_method"]
    if method == "gptq":
        require("bits", settings.get("bits"), 2, 4, 8)
        return _gptq, "qweight"
    if method == "awq":
        require("bits", settings.get("bits", settings.get("w_bit")), 4)
        require("version", str(settings.get("version", "gemm")).lower(), "gemm")
        return _awq, "qweight"
    require("format", settings.get("format"), "pack-quantized")
    groups = settings.get("config_groups")
    if not isinstance(groups, dict) or len(groups) != 1:
        raise WeightsError(f"{path / 'config.json'}: expected one entry in config_groups")
    (group,) = groups.values()
    weights = group.get("weights") or {}
    require("input_activations", group.get("input_activations"), None)
    require("type", weights.get("type"), "int")
    require("num_bits", weights.get("num_bits"), 4, 8)
    require("strategy", weights.get("strategy"), "group", "channel")
    require("actorder", weights.get("actorder"), None, "static", "weight")
    settings["weights"] = weights
    return _compressed, "weight_packed"


def _gptq(stored: _Stored, name: str) -> QuantizedWeight:
    """qweight [in * bits / 32, out], words along the inputs; qzeros [groups, out * bits / 32]; scales [groups, out]."""
    bits = stored.settings["bits"]
    q = _integers(stored.take(f"{name}.qweight").T, bits)  # [out, in]
    scales = stored.take(f"{name}.scales").T
    zeros = _integers(stored.take(f"{name}.qzeros"), bits).T[: len(q)]
    if stored.settings.get("checkpoint_format", "gptq") != "gptq_v2":
        zeros = zeros + 1  # the first version stores one less
    width = _width(stored.settings.get("group_size", -1), q.shape[1])
    order = stored.tensors.pop(f"{name}.g_idx", None)
    if order is not None and not torch.equal(order.long(), torch.arange(q.shape[1]) // width):
        raise ValueError("its inputs are grouped in another order (desc_act), which is not built")
    return _signed(q, scales, zeros, bits, width)


def _awq(stored: _Stored, name: str) -> QuantizedWeight:
    """qweight [in, out / 8], qzeros [groups, out / 8], words along the outputs in AWQ's order; scales [groups, out]."""

    def ordered(words: Tensor) -> Tensor:
        columns = _integers(words, 4).unflatten(1, (-1, 8))
        return columns[..., torch.tensor(AWQ_ORDER).argsort()].flatten(1).T

    q, zeros = ordered(stored.take(f"{name}.qweight")), ordered(stored.take(f"{name}.qzeros"))
    size = stored.settings.get("group_size", stored.settings.get("q_group_size", -1))
    return _signed(q, stored.take(f"{name}.scales").T, zeros, 4, _width(size, q.shape[1]))


def _compressed(stored: _Stored, name: str) -> QuantizedWeight:
    """weight_packed [out, in * bits / 32]; weight_scale [out, groups]; weight_zero_point [out * bits / 32, groups]."""
    weights = stored.settings["weights"]
    bits = weights["num_bits"]
    rows, columns = stored.take(f"{name}.weight_shape").tolist()
    q = _integers(stored.take(f"{name}.weight_packed"), bits)[:, :columns]
    packed_zeros = stored.tensors.pop(f"{name}.weight_zero_point", None)
    zeros = None if packed_zeros is None else _integers(packed_zeros.T, bits).T[:rows]
    size = weights.get("group_size") if weights["strategy"] == "group" else -1
    return _signed(q, stored.take(f"{name}.weight_scale"), zeros, bits, _width(size, columns))


def _width(group_size: int | None, columns: int) -> int:
    return columns if group_size in (None, -1) else min(int(group_size or columns), columns)


def _integers(words: Tensor, bits: int) -> Tensor:
    """int32 [rows, n] -> int16 [rows, n * 32 / bits], lowest bits first, from 0 to 2^bits - 1."""
    if words.dtype != torch.int32:
        raise ValueError(f"expected words of 32 bits, found {words.dtype}")
    parts = words.unsqueeze(-1) >> torch.arange(0, 32, bits, dtype=torch.int32)
    return (parts & (2**bits - 1)).flatten(1).to(torch.int16)


def _signed(q: Tensor, scales: Tensor, zeros: Tensor | None, bits: int, group_size: int) -> QuantizedWeight:
    """From integers that begin at 0 to those of `QuantizedWeight`, which lie around it; no zeros: 0 is the middle."""
    half = 2 ** (bits - 1)
    if zeros is not None:
        zeros = zeros - half
        if int(zeros.max()) >= half:
            raise ValueError(f"a zero point of {int(zeros.max()) + half} is outside {bits} bits")
        zeros = zeros.to(torch.int8).contiguous() if bool(zeros.any()) else None
    signed = (q - half).to(torch.int8).contiguous()
    return QuantizedWeight(signed, scales.contiguous(), zeros, bits, group_size)
