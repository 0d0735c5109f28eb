"""A Llama-family decoder: what one forward pass computes, with the KV cache left to whoever builds the batch.

One pass takes the new tokens of any number of sequences, packed one after another without padding. Everything but
attention treats each row alone; attention, and the keys and values of earlier tokens, sit behind `batch.attend`. So the
same file serves prefill, decode, chunks of both, paged and contiguous caches. Covers Llama 2 and 3, SmolLM2, Qwen2.5
(biases on q, k, v) and Qwen3 (normalised q and k).

Sources: RMSNorm, Zhang and Sennrich 2019; RoPE, Su et al. 2021; SwiGLU, Shazeer 2020; grouped-query attention, Ainslie
et al. 2023; the whole, Touvron et al. 2023. Tensor names in `views` are those of the Hugging Face checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from reference_impl import kernels
from reference_impl.bounds.config import ModelConfig

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch


AtOnce = Callable[[Tensor, Tensor | None, Tensor, float, bool], tuple[Tensor, Tensor]]


class Linear(nn.Module):
    """x [n, in] -> [n, out]. A module of its own so that a quantized one can take its place."""

    def __init__(self, n_in: int, n_out: int, bias: bool, dtype: torch.dtype, device: torch.device | str) -> None:
        super().__init__()
        self.weight = _parameter(n_out, n_in, dtype=dtype, device=device)
        self.bias = _parameter(n_out, dtype=dtype, device=device) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return kernels.linear(x, self.weight, self.bias)

    def after_norm(
        self, x: Tensor, delta: Tensor | None, norm: Tensor, eps: float, gated: bool = False
    ) -> tuple[Tensor, Tensor]:
        """As the function `after_norm`, in one call."""
        return kernels.norm_linear(x, delta, norm, eps, self.weight, self.bias, gated=gated)


def after_norm(
    module: nn.Module, x: Tensor, delta: Tensor | None, norm: Tensor, eps: float, gated: bool = False
) -> tuple[Tensor, Tensor]:
    """(x + delta, module(rms_norm(x + delta))); `gated`: silu of the first half of the outputs times the second.

    At once if the module can, unless somebody wants to see what goes into it.
    """
    at_once: AtOnce | None = getattr(module, "after_norm", None)
    if at_once is not None and not module._forward_hooks and not module._forward_pre_hooks:
        return at_once(x, delta, norm, eps, gated)
    sums, rows = kernels.add_rms_norm(x, delta, norm, eps)
    out = module(rows)
    return sums, kernels.silu_mul(out) if gated else out


class Layer(nn.Module):
    """Attention, then a gated feed-forward network, each on a normalised copy and added back to the residual stream."""

    def __init__(self, config: ModelConfig, dtype: torch.dtype, device: torch.device | str) -> None:
        super().__init__()
        self.config = config
        width = config.n_heads * config.head_dim
        n_qkv_heads = config.n_heads + 2 * config.n_kv_heads
        self.attn_norm = _parameter(config.d_model, dtype=dtype, device=device)
        self.wqkv = Linear(config.d_model, n_qkv_heads * config.head_dim, config.qkv_bias, dtype, device)
        self.wo = Linear(width, config.d_model, False, dtype, device)
        self.mlp_norm = _parameter(config.d_model, dtype=dtype, device=device)
        self.w_gate_up = Linear(config.d_model, 2 * config.d_ff, False, dtype, device)
        self.w_down = Linear(config.d_ff, config.d_model, False, dtype, device)
        self.q_norm = _parameter(config.head_dim, dtype=dtype, device=device) if config.qk_norm else None
        self.k_norm = _parameter(config.head_dim, dtype=dtype, device=device) if config.qk_norm else None

    def forward(
        self, x: Tensor, delta: Tensor | None, batch: ForwardBatch, layer: int, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The residual stream and what is to be added to it, both [n, d_model], after this layer.

        x, and the delta that the layer before left to be added (None before the first); cos and sin [n, 1, head_dim]
        of each row's position. Handing the sum on undone lets the next kernel do it on its way.
        """
        c = self.config
        x, qkv = after_norm(self.wqkv, x, delta, self.attn_norm, c.norm_eps)
        heads = qkv.view(x.shape[0], -1, c.head_dim)  # [n, n_heads + 2 n_kv_heads, head_dim]
        mixed = self.attention(heads, batch, layer, cos, sin)
        x, gated = after_norm(
            self.w_gate_up, x, self.wo(mixed.reshape(x.shape[0], -1)), self.mlp_norm, c.norm_eps, gated=True
        )
        return x, self.w_down(gated)

    def attention(self, heads: Tensor, batch: ForwardBatch, layer: int, cos: Tensor, sin: Tensor) -> Tensor:
        """Queries, keys and values of each token, one behind the other -> [n, n_heads, head_dim]."""
        c = self.config
        n_qk = c.n_heads + c.n_kv_heads
        if self.q_norm is not None and self.k_norm is not None:
            heads = kernels.norm_heads(heads, self.q_norm, self.k_norm, c.n_heads, c.norm_eps)
        if hasattr(batch, "attend_rotated"):  # the cache can turn and store them in one call
            return batch.attend_rotated(layer, heads, c.n_heads, cos, sin)
        qk = kernels.rotate(heads[:, :n_qk], cos, sin)
        return batch.attend(layer, qk[:, : c.n_heads], qk[:, c.n_heads :], heads[:, n_qk:])


class Llama(nn.Module):
    """The decoder of `config`. Parameters are not initialised: fill them through `views` or with `randomize`.

    They ask for no gradient, since this is for serving; call `requires_grad_(True)` to train it.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self, config: ModelConfig, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__()
        self.config = config
        self.embed = _parameter(config.vocab_size, config.d_model, dtype=dtype, device=device)
        self.layers = nn.ModuleList(Layer(config, dtype, device) for _ in range(config.n_layers))
        self.norm = _parameter(config.d_model, dtype=dtype, device=device)
        self.head = Linear(config.d_model, config.vocab_size, False, dtype, "meta" if config.tied else device)
        if config.tied:
            self.head.weight = self.embed
        cos, sin = rope_tables(config, device)
        angles = torch.promote_types(dtype, torch.float32)
        self.register_buffer("cos", cos.to(angles), persistent=False)
        self.register_buffer("sin", sin.to(angles), persistent=False)

    def forward(self, batch: ForwardBatch, rows: Tensor | None = None) -> Tensor:
        """Logits [n_rows, vocab_size] after each token of the pass, or only after those in `rows` (int64 indices).

        The output head is a large matrix: a prefill that needs only its last token's logits should say so. On a CPU
        bfloat16 only stores the weights: rows and logits are float32, which such processors compute faster.
        """
        x = self.look_up(batch.tokens)
        cos, sin = (kernels.look_up(table, batch.positions).unsqueeze(1) for table in (self.cos, self.sin))
        if cos.dtype is not x.dtype:
            cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        delta = None
        for i, layer in enumerate(self.layers):
            x, delta = layer(x, delta, batch, i, cos, sin)
        if rows is not None:
            x = kernels.look_up(x, rows)
            delta = None if delta is None else kernels.look_up(delta, rows)
        return after_norm(self.head, x, delta, self.norm, self.config.norm_eps)[1]

    def look_up(self, tokens: Tensor) -> Tensor:
        """Embeddings [n, d_model] of token ids [n]."""
        return kernels.look_up(self.embed, tokens)

    def views(self) -> dict[str, Tensor]:
        """Every weight under its Hugging Face name; fused matrices appear as views of their parts.

        Writing into a view changes the model. A tied head has no entry of its own.
        """
        c = self.config
        named: dict[str, Tensor] = {"model.embed_tokens.weight": self.embed, "model.norm.weight": self.norm}
        if not c.tied:
            named["lm_head.weight"] = self.head.weight
        qkv_rows = [c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim, c.n_kv_heads * c.head_dim]
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
            prefix = f"model.layers.{i}"
            named[f"{prefix}.input_layernorm.weight"] = layer.attn_norm
            named[f"{prefix}.post_attention_layernorm.weight"] = layer.mlp_norm
            for name, part in zip("qkv", layer.wqkv.weight.split(qkv_rows), strict=True):
                named[f"{prefix}.self_attn.{name}_proj.weight"] = part
            if layer.wqkv.bias is not None:
                for name, part in zip("qkv", layer.wqkv.bias.split(qkv_rows), strict=True):
                    named[f"{prefix}.self_attn.{name}_proj.bias"] = part
            if layer.q_norm is not None and layer.k_norm is not None:
                named[f"{prefix}.self_attn.q_norm.weight"] = layer.q_norm
                named[f"{prefix}.self_attn.k_norm.weight"] = layer.k_norm
            named[f"{prefix}.self_attn.o_proj.weight"] = layer.wo.weight
            gate, up = layer.w_gate_up.weight.chunk(2)
            named[f"{prefix}.mlp.gate_proj.weight"] = gate
            named[f"{prefix}.mlp.up_proj.weight"] = up
            named[f"{prefix}.mlp.down_proj.weight"] = layer.w_down.weight
        return named

    @torch.no_grad()
    def randomize(self, generator: torch.Generator, std: float = 0.02) -> Llama:
        """Fills the weights for tests and benchmarks: norms with 1, the rest from a normal distribution."""
        for parameter in self.parameters():
            parameter.normal_(0.0, std, generator=generator)
        for name, view in self.views().items():
            if name.endswith("norm.weight"):
                view.fill_(1.0)
        return self


class Recompute:
    """A `ForwardBatch` without a cache: whole sequences attend to themselves. Scores a text; the tests' oracle.

    `sequences`: one or more non-empty lists of token ids.
    """

    def __init__(self, *sequences: Sequence[int], device: torch.device | str = "cpu") -> None:
        lengths = [len(s) for s in sequences]
        if not lengths or 0 in lengths:
            raise ValueError(f"every sequence needs at least one token, got lengths {lengths}")
        self.lengths = lengths
        self.tokens = torch.tensor([t for s in sequences for t in s], dtype=torch.int64, device=device)
        self.positions = torch.cat([torch.arange(n, device=device) for n in lengths])
        self.last_rows = torch.tensor(lengths, device=device).cumsum(0) - 1

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal grouped-query attention inside each sequence: q [n, heads, head_dim] -> the same shape."""
        parts = zip(q.split(self.lengths), k.split(self.lengths), v.split(self.lengths), strict=True)
        return torch.cat([_causal(*(t.transpose(0, 1) for t in part)).transpose(0, 1) for part in parts])


def rope_tables(config: ModelConfig, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """cos and sin [max_context, head_dim] for `kernels.rotate`, in float32.

    Angles are products of a position and a frequency in float32, as the models were trained; in bfloat16 a position
    beyond 256 could not even be written down. The first half of each sine row carries the rotation's minus sign.
    """
    angles = torch.outer(torch.arange(config.max_context, dtype=torch.float32), rope_frequencies(config))
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1).to(device), torch.cat((-sin, sin), dim=-1).to(device)


def rope_frequencies(config: ModelConfig) -> Tensor:
    """Radians per token for each of the head_dim / 2 pairs, float32, with Llama 3's stretching where the model has it.

    Llama 3.1 (Grattafiori et al. 2024): wavelengths that fit the original context often enough stay; long ones are
    divided by `factor`; between the two bounds the frequency is interpolated.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / (config.rope_theta**exponents)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    wavelengths = 2 * math.pi / frequencies  # in tokens
    turns = scaling.original_context / wavelengths
    keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    keep = keep.clamp(0.0, 1.0)
    return (1 - keep) * frequencies / scaling.factor + keep * frequencies


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=True)[0]


def _parameter(*shape: int, dtype: torch.dtype, device: torch.device | str) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=dtype, device=device), requires_grad=False)
