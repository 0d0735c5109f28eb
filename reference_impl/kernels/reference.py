"""The operations in plain PyTorch: the definition that fast backends are tested against, and their fallback.

They work in any dtype (float64 included) on any device, and say in a few lines what each kernel computes. For
half-precision inputs, scores and the softmax are float32, as in the fast kernels. Attention: Vaswani et al. 2017,
section 3.2.1; block tables: Kwon et al. 2023 (PagedAttention), section 4.1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from reference_impl.kernels.backend import Backend, Matrix
from reference_impl.kernels.packed import ROWS, PackedWeight
from reference_impl.kernels.paged import PagedKV


class Reference(Backend):
    """Takes every input that `kernels` accepts."""

    name = "torch"

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor | None) -> Tensor:
        """x times weight transposed, plus bias. A matrix of codes is widened some rows at a time, never as a whole."""
        if isinstance(weight, PackedWeight):
            n_rows = weight.shape[0]
            parts = [F.linear(x, weight.part(low, low + ROWS).to(x.dtype)) for low in range(0, n_rows, ROWS)]
            out = torch.cat(parts, dim=1) if parts else x.new_empty(len(x), 0)
            return out if bias is None else out + bias.to(out.dtype)
        if x.dtype != weight.dtype:
            weight = weight.to(x.dtype)
        if bias is not None and bias.dtype != x.dtype:
            bias = bias.to(x.dtype)
        return F.linear(x, weight, bias)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x divided by its root mean square, times weight; Zhang and Sennrich 2019."""
        return F.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)

    def norm_heads(self, heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float) -> Tensor:
        """Normalises queries and keys, and leaves values as they are."""
        n_kv_heads = (heads.shape[1] - n_heads) // 2
        q, k, v = heads.split((n_heads, n_kv_heads, n_kv_heads), dim=1)
        return torch.cat((self.rms_norm(q, q_norm, eps), self.rms_norm(k, k_norm, eps), v), dim=1)

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """RoPE (Su et al. 2021): turns each pair (x[i], x[i + head_dim/2])."""
        swapped = x.roll(x.shape[-1] // 2, dims=-1)
        return torch.addcmul(x * cos, swapped, sin)

    def silu_mul(self, x: Tensor) -> Tensor:
        """silu(gate) * up, which lie side by side; Shazeer 2020 (SwiGLU)."""
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up

    def look_up(self, table: Tensor, index: Tensor) -> Tensor:
        """Rows of the table; on a CPU bfloat16 rows are returned as float32."""
        rows = F.embedding(index, table)
        return rows.to(torch.float32) if rows.is_cpu and rows.dtype is torch.bfloat16 else rows

    def store_kv(self, k: Tensor, v: Tensor, kv: PagedKV, layer: int) -> bool:
        """Writes keys and values into their slots, in place."""
        keys, values = kv.layers[layer]
        slots, block_size = kv.slots, keys.shape[2]
        real = slots >= 0
        if not real.all():
            slots, k, v = slots[real], k[real], v[real]
        block, place = slots // block_size, slots % block_size
        keys[block, :, place] = k.to(keys.dtype)
        values[block, :, place] = v.to(values.dtype)
        return True

    def paged_attention(self, q: Tensor, kv: PagedKV, layer: int) -> Tensor:
        """For one sequence after another: gathers its blocks, then softmax(q kᵀ / √head_dim) v."""
        n_kv_heads, block_size, head_dim = kv.layers[layer][0].shape[1:]
        group = q.shape[1] // n_kv_heads
        compute = torch.promote_types(q.dtype, torch.float32)
        out = torch.empty_like(q)
        first = 0
        lengths = zip(kv.query_lens.tolist(), kv.context_lens.tolist(), strict=True)
        for table, (n_new, n_context) in zip(kv.block_tables, lengths, strict=True):
            blocks = table[: -(-n_context // block_size)].long()
            # [blocks, kv_heads, block_size, head_dim] -> [kv_heads, 1, context, head_dim]
            keys, values = (
                cache[blocks].transpose(0, 1).reshape(n_kv_heads, 1, -1, head_dim)[:, :, :n_context].to(compute)
                for cache in kv.layers[layer]
            )
            queries = q[first : first + n_new].to(compute).view(n_new, n_kv_heads, group, head_dim).permute(1, 2, 0, 3)
            scores = queries @ keys.transpose(-1, -2) * head_dim**-0.5  # [kv_heads, group, new, context]
            position = torch.arange(n_context - n_new, n_context, device=q.device)
            future = torch.arange(n_context, device=q.device) > position[:, None]
            weights = scores.masked_fill(future, float("-inf")).softmax(-1)
            result = (weights @ values).permute(2, 0, 1, 3).reshape(n_new, -1, head_dim)
            out[first : first + n_new] = result.to(q.dtype)
            first += n_new
        return out


REFERENCE = Reference()
