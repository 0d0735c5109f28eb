"""Translates a Hugging Face config.json to `ModelConfig` and back.

A setting that asks for more than Llama, Mistral, Qwen2.5 and Qwen3 have is refused by name, since a model that ignores
it would talk nonsense. Both spellings of RoPE are read: `rope_theta` with `rope_scaling`, and since transformers 5
`rope_parameters`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from reference_impl.bounds.config import ModelConfig
from reference_impl.bounds.rope_scaling import LinearScaling, Llama3Scaling, RopeScaling, YarnScaling
from reference_impl.common.errors import WeightsError

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
MISTRAL_WINDOW = 4096  # of a config that names none
_PLAIN = {  # what these settings have to be, where they are given
    "hidden_act": "silu",
    "mlp_bias": False,
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
    biased = kind in ("llama", "qwen3") and _flag(found, "attention_bias", path)
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
            max_context=_context(found, path),
            qkv_bias=kind == "qwen2" or biased,
            out_bias=biased,
            qk_norm=kind == "qwen3",
        )
    except WeightsError:
        raise
    except ValueError as error:
        raise WeightsError(f"{path}: describes no model ({error})") from None


def _context(found: dict[str, Any], path: Path) -> int:
    """Tokens that the model can attend to. A sliding window hides no token before a text is longer than it."""
    longest = _count(found, "max_position_embeddings", path)
    if found["model_type"] != "mistral" or found.get("sliding_window", 0) is None:
        return longest
    return min(longest, _count(found, "sliding_window", path, MISTRAL_WINDOW))


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
    value = default if found.get(key) is None else found[key]
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
    if kind == "linear":
        return theta, LinearScaling(_positive(settings, "factor", path))
    if kind == "llama3":
        return theta, Llama3Scaling(
            factor=_positive(settings, "factor", path),
            low_freq_factor=_positive(settings, "low_freq_factor", path),
            high_freq_factor=_positive(settings, "high_freq_factor", path),
            original_context=_count(settings, "original_max_position_embeddings", path),
        )
    if kind == "yarn":
        return theta, _yarn(settings, path)
    raise WeightsError(f"{path}: expected RoPE of type default, linear, yarn or llama3; found {kind!r}")


def _yarn(settings: dict[str, Any], path: Path) -> YarnScaling:
    if settings.get("truncate", True) is not True:
        raise WeightsError(
            f"{path}: expected truncate true for YaRN, found {settings['truncate']!r}, which is not built"
        )
    factor = _positive(settings, "factor", path)

    def growth(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    inferred = growth(1.0)
    if settings.get("mscale") and settings.get("mscale_all_dim"):
        inferred = growth(_positive(settings, "mscale", path)) / growth(_positive(settings, "mscale_all_dim", path))
    return YarnScaling(
        factor=factor,
        original_context=_count(settings, "original_max_position_embeddings", path),
        attention_factor=_positive(settings, "attention_factor", path, inferred),
        beta_fast=_positive(settings, "beta_fast", path, 32.0),
        beta_slow=_positive(settings, "beta_slow", path, 1.0),
    )


def config_to_hf(config: ModelConfig) -> dict[str, Any]:
    """A config.json from which transformers builds the same model."""
    kind = "qwen3" if config.qk_norm else "qwen2" if config.qkv_bias and not config.out_bias else "llama"
    rope: dict[str, Any] = {"rope_theta": config.rope_theta} | _scaling_to_hf(config.rope_scaling)
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
        "attention_bias": config.out_bias,
        # both spellings, so that transformers 4 reads it too
        "rope_parameters": rope,
        "rope_theta": config.rope_theta,
        "rope_scaling": None if config.rope_scaling is None else rope,
    }


def _scaling_to_hf(scaling: RopeScaling | None) -> dict[str, Any]:
    match scaling:
        case None:
            return {"rope_type": "default"}
        case LinearScaling():
            return {"rope_type": "linear", "factor": scaling.factor}
        case Llama3Scaling():
            return {
                "rope_type": "llama3",
                "factor": scaling.factor,
                "low_freq_factor": scaling.low_freq_factor,
                "high_freq_factor": scaling.high_freq_factor,
                "original_max_position_embeddings": scaling.original_context,
            }
        case YarnScaling():
            return {
                "rope_type": "yarn",
                "factor": scaling.factor,
                "original_max_position_embeddings": scaling.original_context,
                "attention_factor": scaling.attention_factor,
                "beta_fast": scaling.beta_fast,
                "beta_slow": scaling.beta_slow,
            }
