"""A quantized model on disk: one safetensors file that says what each tensor is, beside config.json and tokenizer.

Matrices are stored as in `QuantizedWeight`, their integers packed without gaps (`packing`), so the file does not depend
on the order that a kernel needs. Reading checks everything that the file claims, and errors name the file and what does
not fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from reference_impl.checkpoints.folder import new_folder, opened
from reference_impl.checkpoints.huggingface import config_from_hf, config_to_hf
from reference_impl.checkpoints.json_file import read_json
from reference_impl.checkpoints.shape import canonical, limited
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama
from reference_impl.model.rope import rope_tables
from reference_impl.quantization.calibrate import LINEARS
from reference_impl.quantization.linear import QuantizedLinear
from reference_impl.quantization.packing import pack_bits, unpack_bits
from reference_impl.quantization.weight import QuantizedWeight

METHOD = "llm-serving-course"  # in config.json, so that no other program takes the file for one of its own
FORMAT = 1
FILE = "model.safetensors"


def save(folder: Path, model: Llama, tokenizer: Tokenizer | None = None) -> None:
    """Writes the folder whole or not at all. ValueError if no matrix of the model is quantized."""
    tensors: dict[str, Tensor] = {}
    described: dict[str, dict[str, int]] = {}
    for name, module in _modules(model):
        if isinstance(module, QuantizedLinear):
            weight = module.quantized()
            rows, columns = weight.shape
            described[name] = {"bits": weight.bits, "group_size": weight.group_size, "rows": rows, "columns": columns}
            tensors[f"{name}.q"] = pack_bits(weight.q, weight.bits)
            tensors[f"{name}.scales"] = weight.scales
            if weight.zeros is not None:
                tensors[f"{name}.zeros"] = weight.zeros
    if not described:
        raise ValueError("no matrix of this model is quantized; `folder.save` writes it")
    tensors |= dict(model.named_parameters())
    metadata = {"format": "pt", "quantized": json.dumps(described)}
    with new_folder(folder) as unfinished:
        state = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_file(state, unfinished / FILE, metadata)
        (unfinished / FILE).chmod(0o644)
        if tokenizer is not None:
            tokenizer.save(unfinished)
        config = config_to_hf(model.config) | {"quantization_config": {"quant_method": METHOD, "format": FORMAT}}
        (unfinished / "config.json").write_text(json.dumps(config, indent=1))


def is_quantized(folder: Path) -> bool:
    """Whether `save` wrote this folder."""
    return folder.is_dir() and _settings(folder).get("quant_method") == METHOD


def load(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    max_context: int | None = None,
) -> Llama:
    """The model; norms, biases and embedding in `dtype`. WeightsError names the file and what is wrong with it."""
    path = folder / FILE
    settings = _settings(folder)
    if settings.get("quant_method") != METHOD or settings.get("format") != FORMAT:
        raise WeightsError(f"{folder / 'config.json'}: expected {METHOD} format {FORMAT}, found {settings or 'none'}")
    found = {k: v for k, v in read_json(folder / "config.json").items() if k != "quantization_config"}
    model = Llama(limited(canonical(config_from_hf(found, folder)), max_context), dtype, "meta")
    tensors, described = _read(path)
    for name, module in _modules(model):
        if name in described:
            weight = _weight(path, name, described[name], tensors, tuple(module.weight.shape))
            old_bias = module.bias
            bias = None if old_bias is None else torch.empty_like(old_bias, device="cpu")
            _replace(model, name, QuantizedLinear(weight, bias))
    for name, parameter in dict(model.named_parameters()).items():
        value = tensors.pop(name, None)
        if value is None or value.shape != parameter.shape:
            shape = None if value is None else list(value.shape)
            raise WeightsError(f"{path}: expected tensor {name} of shape {list(parameter.shape)}, found {shape}")
        _replace(model, name, nn.Parameter(value.to(dtype), requires_grad=False))
    if tensors:
        raise WeightsError(f"{path}: tensor {sorted(tensors)[0]} has no place in this model")
    if not isinstance(model.head, QuantizedLinear) and model.config.tied:
        model.head.weight = model.embed
    model.cos, model.sin = (t.to(torch.promote_types(dtype, torch.float32)) for t in rope_tables(model.config))
    return model.to(device)


def _modules(model: Llama) -> list[tuple[str, Any]]:
    """The matrices that may be quantized, by their names in the model."""
    names = [f"layers.{i}.{name}" for i in range(model.config.n_layers) for name in LINEARS]
    return [(name, model.get_submodule(name)) for name in [*names, "head"]]


def _replace(model: Llama, name: str, new: nn.Module | nn.Parameter) -> None:
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, new)


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    found = read_json(path).get("quantization_config") if path.is_file() else None
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with opened(path) as file:
        text = (file.metadata() or {}).get("quantized", "null")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    try:
        described = json.loads(text)
    except ValueError:
        described = None
    if not isinstance(described, dict):
        raise WeightsError(f"{path}: expected to read in its metadata which matrices are quantized; found nothing")
    return tensors, described


def _weight(
    path: Path, name: str, described: Any, tensors: dict[str, Tensor], shape: tuple[int, ...]
) -> QuantizedWeight:
    try:
        bits, group_size = int(described["bits"]), int(described["group_size"])
        rows, columns = int(described["rows"]), int(described["columns"])
        if (rows, columns) != shape:
            raise ValueError(f"a matrix {list(shape)} is expected, its metadata say {[rows, columns]}")
        q = unpack_bits(tensors.pop(f"{name}.q"), bits, columns)
        if tuple(q.shape) != shape:
            raise ValueError(f"expected {rows} rows, found {len(q)}")
        return QuantizedWeight(q, tensors.pop(f"{name}.scales"), tensors.pop(f"{name}.zeros", None), bits, group_size)
    except KeyError as missing:
        raise WeightsError(f"{path}: matrix {name} lacks {missing}") from None
    except (ValueError, TypeError, RuntimeError) as error:
        raise WeightsError(f"{path}: matrix {name}: {error}") from None
