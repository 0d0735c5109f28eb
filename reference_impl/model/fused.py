"""The same decoder in fewer and larger kernel calls, for passes so short that a launch costs as much as its work.

It reads the weights of a `Llama` and computes its logits. It merges three things. A residual sum, a norm and the matrix
after them are one call, which includes SiLU and the product of gate and up if the matrix holds both. RoPE, the store
into the cache and attention are one call. To merge a sum with the norm after it, a layer does not add its last summand
but hands it on (`delta`). `llama` says what is computed; to understand the model, read that file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from reference_impl import kernels
from reference_impl.bounds.config import ModelConfig
from reference_impl.model.llama import Layer, Linear, Llama

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch


class FusedLlama:
    """Computes what `Llama` computes. It copies no weight, so weights may be replaced at any time."""

    def __init__(self, model: Llama) -> None:
        self.model = model

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def __call__(self, batch: ForwardBatch, rows: Tensor | None = None) -> Tensor:
        """Logits [n_rows, vocab_size]. A batch that does not lie in blocks goes to the model itself."""
        model, eps = self.model, self.model.config.norm_eps
        if not isinstance(batch, kernels.PagedKV):
            logits: Tensor = model(batch, rows)
            return logits
        x = model.embedded(batch.tokens)
        cos, sin = (kernels.look_up(table, batch.positions).unsqueeze(1) for table in (model.cos, model.sin))
        if cos.dtype is not x.dtype:
            cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        delta: Tensor | None = None
        for i, layer in enumerate(model.layers):
            assert isinstance(layer, Layer)
            x, delta = _fused_layer(layer, x, delta, batch, i, cos, sin)
        if rows is not None:
            x = kernels.look_up(x, rows)
            delta = None if delta is None else kernels.look_up(delta, rows)
        head = model.head
        if isinstance(head, Linear):
            return kernels.norm_linear(x, delta, model.norm, eps, head.matrix, head.bias)[1]
        return head(kernels.add_rms_norm(x, delta, model.norm, eps)[1])  # a head that is split over ranks


def fused(model: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A `Llama` in fused steps; anything else that stands in for a model is returned unchanged."""
    return FusedLlama(model) if isinstance(model, Llama) else model


def _fused_layer(
    layer: Layer, x: Tensor, delta: Tensor | None, batch: kernels.PagedKV, i: int, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    """Layer `i`, from x and delta [n, d_model], whose sum is the residual stream, to the same two after the layer."""
    c, qkv, gate_up = layer.config, layer.wqkv, layer.w_gate_up
    x, projected = kernels.norm_linear(x, delta, layer.attn_norm, c.norm_eps, qkv.matrix, qkv.bias)
    heads = projected.view(len(x), -1, c.head_dim)
    if layer.q_norm is not None and layer.k_norm is not None:
        heads = kernels.norm_heads(heads, layer.q_norm, layer.k_norm, c.n_heads, c.norm_eps)
    attended = kernels.rotated_attention(heads, c.n_heads, cos, sin, batch, i)
    delta = layer.wo(attended.flatten(1))
    x, gated = kernels.norm_linear(x, delta, layer.mlp_norm, c.norm_eps, gate_up.matrix, gate_up.bias, gated=True)
    return x, layer.w_down(gated)
