"""Translates a Hugging Face config.json to `ModelConfig` and back.

A setting that asks for more than Llama, Qwen2.5 and Qwen3 have is refused by name, since a model that ignores it would
talk nonsense. Both spellings of RoPE are read: `rope_theta` with `rope_scaling`, and since transformers 5
`rope_parameters`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from reference_impl.bounds.config import ModelConfig, RopeScaling
from reference_impl.common.errors import WeightsError

MODEL_TYPES = ("llama", "qwen2", "qwen3")
_PLAIN = {  # what these settings have to be, where they are given
    "hidden_act": "silu",
    "mlp_bias": False,
    "attention_bias": False,
    "use_sliding_window": False,
    "quantization_config": None,
    "partial_rotary_factor": 1.0,
}


def config_from_hf(found: dict[str, Any], folder: Path) -> ModelConfig:
    """The shape that config.json describes. `folder` names the model and the error."""
    path = folder / "config.json"
    kind = found.get("model_type")
    if kind not in MODEL_TYPES:
        raise WeightsError(f"{path}: expected model_type {', '.join(MODEL_TYPES)}; found {kind!r}")
    for key, expected in _PLAIN.items():
        if found.get(key, expected) not in (expected, None):
            raise WeightsError(f"{path}: expected {key} {expected}; this model has {found[key]!r}, which is not built")
    theta, scaling = _rope(found, path)
    d_model, n_heads = _count(found, "hidden_size", path), _count(found, "num_attention_heads", path)
    try:
        return ModelConfig(
            name=folder.resolve().name,
            n_layers=_count(found, "num_hidden_layers", path),
            d_model=d_model,
            n_heads=n_heads,
            n_kv_heads=_count(found, "num_key_value_heads", path, n_heads),
            head_dim=_count(found, "head_dim", path, d_model // n_heads),
            d_ff=_count(found, "intermediate_size", path),
            vocab_size=_count(found, "vocab_size", path),
            tied=_flag(found, "tie_word_embeddings", path),
            rope_theta=theta,
            rope_scaling=scaling,
            norm_eps=_positive(found, "rms_norm_eps", path),
            max_context=_count(found, "max_position_embeddings", path),
            qkv_bias=kind == "qwen2",
            qk_norm=kind == "qwen3",
        )
    except WeightsError:
        raise
    except ValueError as error:
        raise WeightsError(f"{path}: describes no model ({error})") from None


def _count(found: dict[str, Any], key: str, path: Path, default: int | None = None) -> int:
    value = found.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise WeightsError(f"{path}: expected a value for {key}, found none")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WeightsError(f"{path}: expected a whole number of at least 1 for {key}, found {value!r}")
    return value


def _positive(found: dict[str, Any], key: str, path: Path, default: float | None = None) -> float:
    value = found.get(key, default)
    if value is None:
        raise WeightsError(f"{path}: expected a value for {key}, found none")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise WeightsError(f"{path}: expected a number above 0 for {key}, found {value!r}")
    return float(value)


def _flag(found: dict[str, Any], key: str, path: Path) -> bool:
    value = found.get(key) or False
    if not isinstance(value, bool):
        raise WeightsError(f"{path}: expected true or false for {key}, found {value!r}")
    return value


def _rope(found: dict[str, Any], path: Path) -> tuple[float, RopeScaling | None]:
    settings: dict[str, Any] = {}
    for key in ("rope_scaling", "rope_parameters"):
        part = found.get(key) or {}
        if not isinstance(part, dict):
            raise WeightsError(f"{path}: expected an object under {key}, found {part!r}")
        settings |= part
    if settings.get("partial_rotary_factor", 1.0) != 1.0:
        raise WeightsError(f"{path}: partial_rotary_factor {settings['partial_rotary_factor']!r} is not built")
    theta = _positive({"rope_theta": found.get("rope_theta", 10_000.0)} | settings, "rope_theta", path)
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind == "llama3":
        return theta, RopeScaling(
            factor=_positive(settings, "factor", path),
            low_freq_factor=_positive(settings, "low_freq_factor", path),
            high_freq_factor=_positive(settings, "high_freq_factor", path),
            original_context=_count(settings, "original_max_position_embeddings", path),
        )
    raise WeightsError(f"{path}: expected RoPE of type default or llama3; found {kind!r}")


def config_to_hf(config: ModelConfig) -> dict[str, Any]:
    """A config.json from which transformers builds the same model."""
    kind = "qwen3" if config.qk_norm else "qwen2" if config.qkv_bias else "llama"
    rope: dict[str, Any] = {"rope_theta": config.rope_theta, "rope_type": "default"}
    if config.rope_scaling is not None:
        rope |= {
            "rope_type": "llama3",
            "factor": config.rope_scaling.factor,
            "low_freq_factor": config.rope_scaling.low_freq_factor,
            "high_freq_factor": config.rope_scaling.high_freq_factor,
            "original_max_position_embeddings": config.rope_scaling.original_context,
        }
    return {
        "model_type": kind,
        "architectures": [
            {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[kind]
        ],
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": config.tied,
        "rms_norm_eps": config.norm_eps,
        "max_position_embeddings": config.max_context,
        "hidden_act": "silu",
        # both spellings, so that transformers 4 reads it too
        "rope_parameters": rope,
        "rope_theta": config.rope_theta,
        "rope_scaling": None if config.rope_scaling is None else rope,
    }
