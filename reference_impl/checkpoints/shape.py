"""The shape that a file claims for its model, compared with presets and with the file's own size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.common.errors import WeightsError


def canonical(config: ModelConfig) -> ModelConfig:
    """The preset with this very shape, if there is one, so that a model has one name whatever its file is called."""
    return next((preset for preset in MODELS.values() if replace(config, name=preset.name) == preset), config)


def limited(config: ModelConfig, max_context: int | None) -> ModelConfig:
    """The same shape for contexts of at most `max_context` tokens; None leaves the model's own limit."""
    return config if max_context is None else replace(config, max_context=min(config.max_context, max_context))


def check_shape(found: ModelConfig, expected: ModelConfig, path: Path) -> ModelConfig:
    """Returns `expected` if the file has that shape, whatever its name; WeightsError with both shapes otherwise."""
    if replace(found, name=expected.name) != expected:
        raise WeightsError(f"{path}: expected {describe(expected)}; found {describe(found)}")
    return expected


def check_size(config: ModelConfig, path: Path) -> None:
    """WeightsError if a config asks for more weights than the files have bits, before memory is taken for them."""
    files = list(path.glob("*.safetensors")) if path.is_dir() else [path]
    n_bytes = sum(file.stat().st_size for file in files)
    if files and config.n_params > 8 * n_bytes:
        raise WeightsError(f"{path}: expected weights for {describe(config)}, found {n_bytes:,} bytes")


def describe(config: ModelConfig) -> str:
    return (
        f"{config.name} ({config.n_params:,} parameters: {config.n_layers} layers, width {config.d_model}, "
        f"{config.n_heads} heads, {config.n_kv_heads} KV heads, vocabulary {config.vocab_size:,})"
    )
