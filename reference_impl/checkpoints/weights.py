"""Loads a model: from a GGUF file, or from a Hugging Face folder (config.json, safetensors in one file or in shards).

Each source is a stream of named tensors; the model offers the same names as views of its fused matrices, so loading is
copying one into the other and checking that nothing is missing, left over or of another shape.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.checkpoints.huggingface import config_from_hf, config_to_hf
from reference_impl.checkpoints.tokenizer import Tokenizer, read_json
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama

if TYPE_CHECKING:
    from reference_impl.checkpoints.gguf import StoredType

DEFAULT_MODEL = "smollm2-135m"
PAIR = ("course-target", "course-draft")  # the course's own, which lie in this package
_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "I8": 8, "U8": 8}


class Loaded(NamedTuple):
    """A model, ready to run, with the tokenizer that belongs to it."""

    model: Llama
    tokenizer: Tokenizer


def load(
    source: str | Path = DEFAULT_MODEL, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Loaded:
    """Loads "smollm2-135m" (fetched on first use), one of `PAIR`, a GGUF file, or a Hugging Face folder.

    Raises WeightsError that names the file and what was expected of it.
    """
    path = resolve(source)
    expected = MODELS[DEFAULT_MODEL] if source == DEFAULT_MODEL else None
    return Loaded(load_model(path, dtype, device, expected), load_tokenizer(path))


def load_model(
    path: Path,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    expected: ModelConfig | None = None,
) -> Llama:
    """The weights of a GGUF file or folder in a new model. `expected`: the shape that it must have."""
    if path.is_dir():
        from reference_impl.checkpoints import quantized as checkpoint

        if checkpoint.is_quantized(path):
            return checkpoint.load(path, dtype, device)
    config, tensors = read(path)
    if expected is not None:
        check_shape(config, expected, path)
    check_size(config, path)
    model = Llama(config, dtype, device)
    fill(model, tensors, path)
    return model


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a folder, or of a GGUF file: from the tokenizer.json beside it if there is one."""
    if path.is_dir():
        return Tokenizer.from_folder(path)
    if (path.parent / "tokenizer.json").is_file():
        return Tokenizer.from_folder(path.parent)
    from reference_impl.checkpoints.gguf import GgufFile

    return Tokenizer.from_gguf(GgufFile(path).tokenizer(), path)


def resolve(source: str | Path) -> Path:
    """The file or folder that `source` names; fetches the default model if it is not there yet."""
    if source == DEFAULT_MODEL:
        from reference_impl.checkpoints.fetch import default_model_path

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
        return canonical(config), _folder_tensors(path)
    from reference_impl.checkpoints.gguf import GgufFile

    file = GgufFile(path)
    config = file.config()
    return canonical(config), file.tensors(config)


def tensor(name: str, source: str | Path = DEFAULT_MODEL) -> Tensor:
    """One weight by its Hugging Face name, e.g. "model.layers.0.mlp.down_proj.weight" [d_model, d_ff]."""
    path = resolve(source)
    if path.is_dir():
        files = _shards(path)
        if name in files:
            with _opened(files[name]) as file:
                return file.get_tensor(name)
    else:
        for found, value in read(path)[1]:
            if found == name:
                return value
    raise WeightsError(f"{path}: has no tensor {name}")


def stored_types(source: str | Path = DEFAULT_MODEL) -> dict[str, StoredType]:
    """How each tensor is stored: (format, bits per weight with scales), by Hugging Face name.

    For the default model, and any folder that `save` made of a GGUF file, the answer is that of the GGUF file.
    """
    from reference_impl.checkpoints.gguf import GgufFile, StoredType

    path = resolve(source)
    if not path.is_dir():
        return GgufFile(path).stored_types()
    types = {}
    for name, shard in _shards(path).items():
        with _opened(shard) as file:
            recorded = json.loads((file.metadata() or {}).get("stored_types", "{}"))
            kind = file.get_slice(name).get_dtype()
            types[name] = StoredType(*recorded.get(name, (kind, _BITS.get(kind, float("nan")))))
    return types


def check_shape(found: ModelConfig, expected: ModelConfig, path: Path) -> ModelConfig:
    """Returns `expected` if the file has that shape, whatever its name; WeightsError with both shapes otherwise."""
    if replace(found, name=expected.name) != expected:
        raise WeightsError(f"{path}: expected {_describe(expected)}; found {_describe(found)}")
    return expected


def check_size(config: ModelConfig, path: Path) -> None:
    """Refuses a config that asks for more weights than the files have bits, before memory is taken for them."""
    files = list(path.glob("*.safetensors")) if path.is_dir() else [path]
    n_bytes = sum(file.stat().st_size for file in files)
    if files and config.n_params > 8 * n_bytes:
        raise WeightsError(f"{path}: expected weights for {_describe(config)}, found {n_bytes:,} bytes")


def fill(model: Llama, tensors: Iterable[tuple[str, Tensor]], path: Path) -> None:
    """Copies every tensor into its place in the model. `path` is for the error if the two do not fit together."""
    views = model.views()
    missing = set(views)
    for name, value in tensors:
        if name.endswith("rotary_emb.inv_freq") or (name == "lm_head.weight" and model.config.tied):
            continue  # derived from the config, or a second copy of the embeddings
        if name not in views:
            raise WeightsError(f"{path}: tensor {name} has no place in {_describe(model.config)}")
        if value.shape != views[name].shape:
            expected, found = list(views[name].shape), list(value.shape)
            raise WeightsError(f"{path}: expected tensor {name} of shape {expected}, found {found}")
        views[name].copy_(value)
        missing.discard(name)
    if missing:
        first = sorted(missing)[0]
        raise WeightsError(f"{path}: expected {len(views)} tensors, {len(missing)} are missing, among them {first}")


def save(
    folder: Path,
    config: ModelConfig,
    tensors: Iterable[tuple[str, Tensor]],
    tokenizer: Tokenizer | None = None,
    types: dict[str, StoredType] | None = None,
) -> None:
    """Writes a Hugging Face folder that `load` and transformers can read. The folder appears whole or not at all.

    If two processes write the same folder, the first to finish wins. `types` records the formats of the origin.
    """
    with new_folder(folder) as unfinished:
        metadata = {"format": "pt"} | ({} if types is None else {"stored_types": json.dumps(types)})
        state = {name: value.contiguous() for name, value in tensors}
        save_file(state, unfinished / "model.safetensors", metadata)
        (unfinished / "model.safetensors").chmod(0o644)
        if tokenizer is not None:
            tokenizer.save(unfinished)
        (unfinished / "config.json").write_text(json.dumps(config_to_hf(config), indent=1))


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` at the end, whole or not at all; the first of several wins."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield unfinished
        unfinished.chmod(0o755)
        try:
            os.rename(unfinished, target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _folder_tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    names_of: dict[Path, list[str]] = {}
    for name, shard in _shards(folder).items():
        names_of.setdefault(shard, []).append(name)
    for shard, names in names_of.items():
        with _opened(shard) as file:
            for name in names:
                yield name, file.get_tensor(name)


def _shards(folder: Path) -> dict[str, Path]:
    """Which safetensors file of the folder holds each tensor."""
    index = folder / "model.safetensors.index.json"
    single = folder / "model.safetensors"
    if index.is_file():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise WeightsError(f"{index}: expected a 'weight_map' from tensors to files")
        # only plain names: an index must not lead out of its folder
        files = {name: folder / Path(str(shard)).name for name, shard in weight_map.items()}
        for name, shard in files.items():
            with _opened(shard) as file:
                if name not in file.keys():  # noqa: SIM118 (not a dict)
                    raise WeightsError(f"{shard}: expected tensor {name}, as {index.name} says; it is not there")
        return files
    if not single.is_file():
        raise WeightsError(f"{folder}: expected model.safetensors or model.safetensors.index.json; found neither")
    with _opened(single) as file:
        return dict.fromkeys(file.keys(), single)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise WeightsError(f"{path}: no such file; expected a safetensors file")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path}: expected a whole safetensors file; it is damaged or cut short ({error})") from None


def canonical(config: ModelConfig) -> ModelConfig:
    """The preset with this very shape if there is one, so that one model has one name whatever its file is called."""
    return next((preset for preset in MODELS.values() if replace(config, name=preset.name) == preset), config)


def _describe(config: ModelConfig) -> str:
    return (
        f"{config.name} ({config.n_params:,} parameters: {config.n_layers} layers, width {config.d_model}, "
        f"{config.n_heads} heads, {config.n_kv_heads} KV heads, vocabulary {config.vocab_size:,})"
    )
