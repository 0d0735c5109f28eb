"""Translates a Hugging Face config.json to `ModelConfig` and back.

Whatever the model would need beyond Llama, Qwen2.5 and Qwen3 is refused by name: a setting that is silently ignored
gives a model that talks nonsense. Both spellings of RoPE are read: `rope_theta` with `rope_scaling`, and since
transformers 5 `rope_parameters`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference_impl.bounds.config import ModelConfig, RopeScaling
from reference_impl.common.errors import WeightsError

MODEL_TYPES = ("llama", "qwen2", "qwen3")


def config_from_hf(found: dict[str, Any], folder: Path) -> ModelConfig:
    """The shape that config.json describes. `folder` names the model and the error."""
    path = folder / "config.json"
    kind = found.get("model_type")
    if kind not in MODEL_TYPES:
        raise WeightsError(f"{path}: expected model_type {', '.join(MODEL_TYPES)}; found {kind!r}")
    plain = {
        "hidden_act": "silu",
        "mlp_bias": False,
        "attention_bias": False,
        "use_sliding_window": False,
        "quantization_config": None,
        "partial_rotary_factor": 1.0,
    }
    for key, expected in plain.items():
        if found.get(key, expected) not in (expected, None):
            raise WeightsError(f"{path}: expected {key} {expected}; this model has {found[key]!r}, which is not built")
    theta, scaling = _rope(found, path)
    try:
        d_model, n_heads = int(found["hidden_size"]), int(found["num_attention_heads"])
        return ModelConfig(
            name=folder.resolve().name,
            n_layers=int(found["num_hidden_layers"]),
            d_model=d_model,
            n_heads=n_heads,
            n_kv_heads=int(found.get("num_key_value_heads") or n_heads),
            head_dim=int(found.get("head_dim") or d_model // n_heads),
            d_ff=int(found["intermediate_size"]),
            vocab_size=int(found["vocab_size"]),
            tied=bool(found.get("tie_word_embeddings", False)),
            rope_theta=theta,
            rope_scaling=scaling,
            norm_eps=float(found["rms_norm_eps"]),
            max_context=int(found["max_position_embeddings"]),
            qkv_bias=kind == "qwen2",
            qk_norm=kind == "qwen3",
        )
    except KeyError as error:
        raise WeightsError(f"{path}: expected a value for {error.args[0]}, found none") from None
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise WeightsError(f"{path}: describes no model ({error})") from None


def _rope(found: dict[str, Any], path: Path) -> tuple[float, RopeScaling | None]:
    settings = found.get("rope_parameters") or {"rope_theta": found.get("rope_theta", 10_000.0)}
    settings = settings | (found.get("rope_scaling") or {})
    kind = settings.get("rope_type", settings.get("type", "default"))
    try:
        theta = float(settings.get("rope_theta", 10_000.0))
        if kind == "default":
            return theta, None
        if kind == "llama3":
            return theta, RopeScaling(
                factor=float(settings["factor"]),
                low_freq_factor=float(settings["low_freq_factor"]),
                high_freq_factor=float(settings["high_freq_factor"]),
                original_context=int(settings["original_max_position_embeddings"]),
            )
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{path}: its RoPE settings lack or misstate {error}") from None
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
