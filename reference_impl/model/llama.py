"""A Llama-family decoder: what one forward pass computes, with the KV cache left to whatever builds the batch.

One pass takes the new tokens of any number of sequences, packed one after another without padding. Everything but
attention treats each row alone; attention, and the keys and values of earlier tokens, are behind `batch.attend`. So the
same file serves prefill, decode, chunks of both, paged and contiguous caches. It covers Llama 2 and 3, SmolLM2, Qwen2.5
(biases on q, k, v) and Qwen3 (normalised q and k). `fused` computes the same in fewer and larger steps.

Sources: RMSNorm, Zhang and Sennrich 2019; RoPE, Su et al. 2021; SwiGLU, Shazeer 2020; grouped-query attention, Ainslie
et al. 2023; the whole, Touvron et al. 2023. Tensor names in `views` are those of the Hugging Face checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from reference_impl import kernels
from reference_impl.bounds.config import ModelConfig
from reference_impl.model.rope import rope_tables

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch


class Linear(nn.Module):
    """x [n, in] -> [n, out]. It is a module of its own so that a quantized one can replace it."""

    def __init__(self, n_in: int, n_out: int, bias: bool, dtype: torch.dtype, device: torch.device | str) -> None:
        super().__init__()
        self.weight = _parameter(n_out, n_in, dtype=dtype, device=device)
        self.bias = _parameter(n_out, dtype=dtype, device=device) if bias else None

    @property
    def matrix(self) -> kernels.Matrix:
        """[out, in], as the kernels take it."""
        return self.weight

    def forward(self, x: Tensor) -> Tensor:
        return kernels.linear(x, self.matrix, self.bias)


class Layer(nn.Module):
    """Attention, then a gated feed-forward network, each on a normalised copy and added back to the residual stream."""

    def __init__(self, config: ModelConfig, dtype: torch.dtype, device: torch.device | str) -> None:
        super().__init__()
        self.config = config
        width = config.n_heads * config.head_dim
        n_qkv_heads = config.n_heads + 2 * config.n_kv_heads
        self.attn_norm = _parameter(config.d_model, dtype=dtype, device=device)
        self.wqkv = Linear(config.d_model, n_qkv_heads * config.head_dim, config.qkv_bias, dtype, device)
        self.wo = Linear(width, config.d_model, config.out_bias, dtype, device)
        self.mlp_norm = _parameter(config.d_model, dtype=dtype, device=device)
        self.w_gate_up = Linear(config.d_model, 2 * config.d_ff, False, dtype, device)
        self.w_down = Linear(config.d_ff, config.d_model, False, dtype, device)
        self.q_norm = _parameter(config.head_dim, dtype=dtype, device=device) if config.qk_norm else None
        self.k_norm = _parameter(config.head_dim, dtype=dtype, device=device) if config.qk_norm else None

    def forward(self, x: Tensor, batch: ForwardBatch, layer: int, cos: Tensor, sin: Tensor) -> Tensor:
        """The residual stream x [n, d_model] after this layer; cos and sin [n, 1, head_dim] of each row's position."""
        c = self.config
        normed = kernels.rms_norm(x, self.attn_norm, c.norm_eps)
        heads = self.wqkv(normed).view(len(x), -1, c.head_dim)  # queries, keys and values side by side
        if self.q_norm is not None and self.k_norm is not None:  # Qwen3
            heads = kernels.norm_heads(heads, self.q_norm, self.k_norm, c.n_heads, c.norm_eps)
        qk, v = heads.split((c.n_heads + c.n_kv_heads, c.n_kv_heads), dim=1)
        q, k = kernels.rotate(qk, cos, sin).split((c.n_heads, c.n_kv_heads), dim=1)
        attended = batch.attend(layer, q, k, v)  # [n, n_heads, head_dim]
        x = x + self.wo(attended.flatten(1))

        normed = kernels.rms_norm(x, self.mlp_norm, c.norm_eps)
        gate_up = self.w_gate_up(normed)  # side by side too
        return x + self.w_down(kernels.silu_mul(gate_up))


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
        x = self.embedded(batch.tokens)
        cos, sin = (table[batch.positions].unsqueeze(1).to(x.dtype) for table in (self.cos, self.sin))
        for i, layer in enumerate(self.layers):
            x = layer(x, batch, i, cos, sin)
        if rows is not None:
            x = x[rows]
        return self.head(kernels.rms_norm(x, self.norm, self.config.norm_eps))

    def embedded(self, tokens: Tensor) -> Tensor:
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
            if layer.wo.bias is not None:
                named[f"{prefix}.self_attn.o_proj.bias"] = layer.wo.bias
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


def _parameter(*shape: int, dtype: torch.dtype, device: torch.device | str) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=dtype, device=device), requires_grad=False)
