"""A Hugging Face folder on disk: config.json, a tokenizer, and safetensors in one file or in shards.

Reading never leaves the folder, and errors name what is missing, damaged or cut short. A folder is written whole or not
at all.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.checkpoints.huggingface import config_to_hf
from reference_impl.checkpoints.json_file import read_json
from reference_impl.common.errors import WeightsError

if TYPE_CHECKING:
    from reference_impl.checkpoints.gguf import StoredType
    from reference_impl.checkpoints.tokenizer import Tokenizer

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


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
    """A folder to fill, which becomes `target` at the end, whole or not at all. The first of several wins."""
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


def tensors(folder: Path, *, tied: bool) -> Iterator[tuple[str, Tensor]]:
    """Each tensor under its name, one at a time. A `tied` matrix comes once, as the embedding."""
    names_of: dict[Path, list[str]] = {}
    files = shards(folder)
    for name, shard in files.items():
        names_of.setdefault(shard, []).append(name)
    for shard, names in names_of.items():
        with opened(shard) as file:
            for name in names:
                if tied and name == HEAD:
                    if EMBEDDING not in files:
                        yield EMBEDDING, file.get_tensor(name)
                else:
                    yield name, file.get_tensor(name)


def has_head_of_its_own(folder: Path) -> bool:
    """Whether an output head is stored that differs from the embedding, even if config.json calls them tied."""
    files = shards(folder)
    if HEAD not in files or EMBEDDING not in files:
        return False
    with opened(files[HEAD]) as one, opened(files[EMBEDDING]) as other:
        return not torch.equal(one.get_tensor(HEAD), other.get_tensor(EMBEDDING))


def shards(folder: Path) -> dict[str, Path]:
    """Which safetensors file of the folder holds each tensor."""
    index = folder / "model.safetensors.index.json"
    single = folder / "model.safetensors"
    if index.is_file():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise WeightsError(f"{index}: expected a 'weight_map' from tensors to files")
        # plain names only, as an index must not lead out of its folder
        files = {name: folder / Path(str(shard)).name for name, shard in weight_map.items()}
        for name, shard in files.items():
            with opened(shard) as file:
                if name not in file.keys():  # noqa: SIM118 (not a dict)
                    raise WeightsError(f"{shard}: expected tensor {name}, as {index.name} says; it is not there")
        return files
    if not single.is_file():
        raise WeightsError(f"{folder}: expected model.safetensors or model.safetensors.index.json; found neither")
    with opened(single) as file:
        return dict.fromkeys(file.keys(), single)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise WeightsError(f"{path}: no such file; expected a safetensors file")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path}: expected a whole safetensors file; it is damaged or cut short ({error})") from None
