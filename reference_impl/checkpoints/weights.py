"""Loads a model from a GGUF file or a Hugging Face folder (config.json, safetensors in one file or in shards).

Each source is a stream of named tensors, and the model offers views of its fused matrices under the same names. So
loading copies one into the other, and checks that nothing is missing, left over or of another shape.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.checkpoints import folder
from reference_impl.checkpoints.fetch import DEFAULT_MODEL, default_model_path
from reference_impl.checkpoints.huggingface import config_from_hf
from reference_impl.checkpoints.json_file import read_json
from reference_impl.checkpoints.shape import canonical, check_shape, check_size, describe, limited
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama

if TYPE_CHECKING:
    from reference_impl.checkpoints.gguf import StoredType

PAIR = ("course-target", "course-draft")  # the course's own models, which are part of this package
_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "I8": 8, "U8": 8}


class Loaded(NamedTuple):
    """A model, ready to run, with the tokenizer that belongs to it."""

    model: Llama
    tokenizer: Tokenizer


def load(
    source: str | Path = DEFAULT_MODEL,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    max_context: int | None = None,
) -> Loaded:
    """Loads "smollm2-135m" (fetched on first use), one of `PAIR`, a GGUF file, or a Hugging Face folder.

    `max_context`: as many tokens as will be used, so that no table is made for more; the model's own limit stays one.
    Raises WeightsError that names the file and what was expected of it.
    """
    path = resolve(source)
    expected = MODELS[DEFAULT_MODEL] if source == DEFAULT_MODEL else None
    tokenizer = load_tokenizer(path)
    model = load_model(path, dtype, device, expected, max_context)
    if tokenizer.vocab_size > model.config.vocab_size:
        raise WeightsError(
            f"{path}: its tokenizer knows {tokenizer.vocab_size:,} tokens, but the model has embeddings for "
            f"{model.config.vocab_size:,}"
        )
    return Loaded(model, tokenizer)


def load_model(
    path: Path,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    expected: ModelConfig | None = None,
    max_context: int | None = None,
) -> Llama:
    """The weights of a GGUF file or folder in a new model. `expected`: the shape that it must have."""
    if path.is_dir():
        from reference_impl.checkpoints import prequantized, quantized

        if quantized.is_quantized(path):
            return quantized.load(path, dtype, device, max_context)
        if prequantized.method_of(path) is not None:
            return prequantized.load(path, dtype, device, max_context)
    config, tensors = read(path)
    if expected is not None:
        check_shape(config, expected, path)
    check_size(config, path)
    model = Llama(limited(config, max_context), dtype, device)
    fill(model, tensors, path)
    return model


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a folder or a GGUF file; a tokenizer.json beside the file takes precedence."""
    if path.is_dir():
        return Tokenizer.from_folder(path)
    if (path.parent / "tokenizer.json").is_file():
        return Tokenizer.from_folder(path.parent)
    from reference_impl.checkpoints.gguf import GgufFile

    return Tokenizer.from_gguf(GgufFile(path).tokenizer(), path)


def resolve(source: str | Path) -> Path:
    """The file or folder that `source` names; fetches the default model if it is not there yet."""
    if source == DEFAULT_MODEL:
        return default_model_path()
    if source in PAIR:
        return Path(__file__).parent / "pair" / source
    if not Path(source).exists():
        hint = f"; of the presets only {DEFAULT_MODEL} can be fetched" if source in MODELS else ""
        known = ", ".join((DEFAULT_MODEL, *PAIR))
        raise WeightsError(f"{source}: no such model; expected {known}, a GGUF file or a folder{hint}")
    return Path(source)


def read(path: Path) -> tuple[ModelConfig, Iterator[tuple[str, Tensor]]]:
    """The shape of a GGUF file's or folder's model, and its tensors under their Hugging Face names, one at a time."""
    if path.is_dir():
        config = config_from_hf(read_json(path / "config.json"), path)
        if config.tied and folder.has_head_of_its_own(path):
            config = replace(config, tied=False)
        return canonical(config), folder.tensors(path, tied=config.tied)
    from reference_impl.checkpoints.gguf import GgufFile

    file = GgufFile(path)
    config = file.config()
    return canonical(config), file.tensors(config)


def tensor(name: str, source: str | Path = DEFAULT_MODEL) -> Tensor:
    """One weight by its Hugging Face name, e.g. "model.layers.0.mlp.down_proj.weight" [d_model, d_ff]."""
    path = resolve(source)
    if path.is_dir():
        files = folder.shards(path)
        if name in files:
            with folder.opened(files[name]) as file:
                return file.get_tensor(name)
    else:
        for found, value in read(path)[1]:
            if found == name:
                return value
    raise WeightsError(f"{path}: has no tensor {name}")


def stored_types(source: str | Path = DEFAULT_MODEL) -> dict[str, StoredType]:
    """How each tensor is stored: (format, bits per weight with scales), by Hugging Face name.

    For the default model, and for any folder that `save` made of a GGUF file, these are the GGUF file's.
    """
    from reference_impl.checkpoints.gguf import GgufFile, StoredType

    path = resolve(source)
    if not path.is_dir():
        return GgufFile(path).stored_types()
    types = {}
    for name, shard in folder.shards(path).items():
        with folder.opened(shard) as file:
            recorded = json.loads((file.metadata() or {}).get("stored_types", "{}"))
            kind = file.get_slice(name).get_dtype()
            types[name] = StoredType(*recorded.get(name, (kind, _BITS.get(kind, float("nan")))))
    return types


def fill(model: Llama, tensors: Iterable[tuple[str, Tensor]], path: Path) -> None:
    """Copies every tensor into its place in the model. `path` is for the error if the two do not fit together."""
    views = model.views()
    missing = set(views)
    for name, value in tensors:
        if name.endswith("rotary_emb.inv_freq"):
            continue  # computed from the config
        if name not in views:
            raise WeightsError(f"{path}: tensor {name} has no place in {describe(model.config)}")
        if value.shape != views[name].shape:
            expected, found = list(views[name].shape), list(value.shape)
            raise WeightsError(f"{path}: expected tensor {name} of shape {expected}, found {found}")
        if not value.is_floating_point():
            raise WeightsError(f"{path}: expected tensor {name} in floating point, found {value.dtype}")
        if not torch.isfinite(value).all():
            raise WeightsError(f"{path}: tensor {name} holds values that are not finite numbers")
        views[name].copy_(value)
        missing.discard(name)
    if missing:
        first = sorted(missing)[0]
        raise WeightsError(f"{path}: expected {len(views)} tensors, {len(missing)} are missing, among them {first}")
