"""Shapes of the Llama-family models that the course talks about, and what follows from a shape: parameters, KV bytes.

A decoder is described by a dozen integers; everything that serving costs starts from them. The numbers are those of
each model's public `config.json` (Hugging Face hub). Standard library only.
"""

from dataclasses import dataclass
from functools import partial

from reference_impl.bounds.arithmetic import kv_bytes_per_token
from reference_impl.bounds.rope_scaling import Llama3Scaling, RopeScaling


@dataclass(frozen=True)
class ModelConfig:
    """One decoder: RMSNorm, RoPE, grouped-query attention, SwiGLU. Sizes are counts of numbers, not bytes.

    Raises ValueError for sizes that no model can have.
    """

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    vocab_size: int
    tied: bool = False  # the output head is the embedding table
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    norm_eps: float = 1e-5
    max_context: int = 8192  # tokens
    qkv_bias: bool = False  # Qwen2.5
    out_bias: bool = False  # after attention: Llama with `attention_bias`, which then has those of q, k, v too
    qk_norm: bool = False  # Qwen3: an RMSNorm over head_dim for q and one for k

    def __post_init__(self) -> None:
        for field in ("n_layers", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab_size", "max_context"):
            if getattr(self, field) < 1:
                raise ValueError(f"{self.name}: {field} must be positive, got {getattr(self, field)}")
        if self.n_heads % self.n_kv_heads:
            raise ValueError(f"{self.name}: {self.n_heads} query heads cannot share {self.n_kv_heads} KV heads evenly")

    @property
    def embedding_params(self) -> int:
        """Numbers in one [vocab_size, d_model] table."""
        return self.vocab_size * self.d_model

    @property
    def norm_params(self) -> int:
        """Weights of all RMSNorms: two a layer, the last one, and those of q and k where the model has them."""
        per_layer = 2 * self.d_model + (2 * self.head_dim if self.qk_norm else 0)
        return self.n_layers * per_layer + self.d_model

    @property
    def n_params(self) -> int:
        """All parameters; tied embeddings are counted once."""
        return self.n_params_without_norms + self.norm_params

    @property
    def n_params_without_norms(self) -> int:
        """Matrices and biases only, as Stanford CS336 (lecture 10) counts."""
        q_width = self.n_heads * self.head_dim
        kv_width = self.n_kv_heads * self.head_dim
        attention = 2 * self.d_model * q_width + 2 * self.d_model * kv_width
        biases = (q_width + 2 * kv_width if self.qkv_bias else 0) + (self.d_model if self.out_bias else 0)
        feed_forward = 3 * self.d_model * self.d_ff
        tables = self.embedding_params * (1 if self.tied else 2)
        return tables + self.n_layers * (attention + biases + feed_forward)

    @property
    def params_read_per_step(self) -> int:
        """What a decode step must read: all but an untied input table, of which a token needs one row."""
        return self.n_params if self.tied else self.n_params - self.embedding_params

    def kv_bytes_per_token(self, bytes_per_value: float = 2) -> int:
        """Bytes that one token adds to the KV cache, all layers: K and V for each KV head (not for each query head)."""
        return int(kv_bytes_per_token(self.n_layers, self.n_kv_heads, self.head_dim, bytes_per_value))


_STRETCHED = Llama3Scaling(factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192)
_llama_3_2 = partial(ModelConfig, rope_theta=5e5, rope_scaling=_STRETCHED, max_context=131_072)
_qwen = partial(ModelConfig, vocab_size=151_936, tied=True, rope_theta=1e6, norm_eps=1e-6)

_PRESETS = (
    ModelConfig("smollm2-135m", 30, 576, 9, 3, 64, 1536, 49_152, tied=True, rope_theta=1e5, max_context=8192),
    _qwen("qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, max_context=32_768, qkv_bias=True),
    _qwen("qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, max_context=40_960, qk_norm=True),
    _llama_3_2("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, vocab_size=128_256, tied=True),
    _qwen("qwen3-4b", 36, 2560, 32, 8, 128, 9728, max_context=40_960, qk_norm=True),
    ModelConfig("llama-2-7b", 32, 4096, 32, 32, 128, 11_008, 32_000, max_context=4096),
    ModelConfig("llama-3-8b", 32, 4096, 32, 8, 128, 14_336, 128_256, rope_theta=5e5, max_context=8192),
    ModelConfig("llama-2-13b", 40, 5120, 40, 40, 128, 13_824, 32_000, max_context=4096),
    ModelConfig("llama-3-70b", 80, 8192, 64, 8, 128, 28_672, 128_256, rope_theta=5e5, max_context=8192),
)

MODELS: dict[str, ModelConfig] = {preset.name: preset for preset in _PRESETS}


def find_model(name: str) -> ModelConfig:
    """The preset called `name`; ValueError that lists the known ones otherwise."""
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}; known: {', '.join(MODELS)}")
    return MODELS[name]
