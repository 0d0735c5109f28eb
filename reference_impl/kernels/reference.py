"""Plain PyTorch twins of every kernel: the definition that the fast versions are tested against, and the fallback.

They run in any dtype (float64 included) on any device and say in a few lines what each kernel computes. Scores and the
softmax of half-precision inputs are taken in float32, as the fast kernels do. Attention: Vaswani et al. 2017, section
3.2.1; block tables: Kwon et al. 2023 (PagedAttention), section 4.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.kernels.packed import ROWS, PackedWeight


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [n, in] times weight [out, in] transposed, plus bias [out] -> [n, out] in x's dtype."""
    if x.dtype != weight.dtype:
        weight = weight.to(x.dtype)
    if bias is not None and bias.dtype != x.dtype:
        bias = bias.to(x.dtype)
    return torch.nn.functional.linear(x, weight, bias)


def paged_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """Causal grouped-query attention of each sequence's newest tokens over its own blocks.

    q [n_tokens, n_heads, head_dim], sequences packed one after another; caches [n_blocks, n_kv_heads, block_size,
    head_dim]; block_tables [n_seqs, max_blocks]; query_lens and context_lens [n_seqs], the context including the new
    tokens. Returns a tensor like q. Whatever lies in a block behind a sequence's length is never read.
    """
    n_kv_heads, block_size, head_dim = k_cache.shape[1:]
    group = q.shape[1] // n_kv_heads
    compute = torch.promote_types(q.dtype, torch.float32)
    out = torch.empty_like(q)
    first = 0
    for table, n_new, n_context in zip(block_tables, query_lens.tolist(), context_lens.tolist(), strict=True):
        blocks = table[: -(-n_context // block_size)].long()
        # [blocks, kv_heads, block_size, head_dim] -> [kv_heads, 1, context, head_dim]
        keys, values = (
            cache[blocks].transpose(0, 1).reshape(n_kv_heads, 1, -1, head_dim)[:, :, :n_context].to(compute)
            for cache in (k_cache, v_cache)
        )
        queries = q[first : first + n_new].to(compute).view(n_new, n_kv_heads, group, head_dim).permute(1, 2, 0, 3)
        scores = queries @ keys.transpose(-1, -2) * scale  # [kv_heads, group, new, context]
        position = torch.arange(n_context - n_new, n_context, device=q.device)
        future = torch.arange(n_context, device=q.device) > position[:, None]
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        result = (weights @ values).permute(2, 0, 1, 3).reshape(n_new, -1, head_dim)
        out[first : first + n_new] = result.to(q.dtype)
        first += n_new
    return out


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Writes k and v [n_tokens, n_kv_heads, head_dim] into the caches, in place.

    slots int64 [n_tokens]: block * block_size + place in the block. A negative slot is a padding row: nothing is
    written for it.
    """
    block_size = k_cache.shape[2]
    real = slots >= 0
    if not real.all():
        slots, k, v = slots[real], k[real], v[real]
    block, place = slots // block_size, slots % block_size
    k_cache[block, :, place] = k.to(k_cache.dtype)
    v_cache[block, :, place] = v.to(v_cache.dtype)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., width] divided by its root mean square, times weight [width]; Zhang and Sennrich 2019."""
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE (Su et al. 2021): turns each pair (x[i], x[i + head_dim/2]).

    x [n, heads, head_dim]; cos and sin [n, 1, head_dim], the first half of each sine row with the rotation's sign.
    """
    swapped = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.addcmul(x * cos, swapped, sin)


def silu_mul(x: Tensor) -> Tensor:
    """x [n, 2 width], gate and up side by side -> silu(gate) * up [n, width]; Shazeer 2020 (SwiGLU)."""
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def add_rms_norm(x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(x + delta, rms_norm of that), all like x; without delta x itself is the sum."""
    sums = x if delta is None else x + delta
    return sums, rms_norm(sums, weight, eps)


def norm_heads(heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float) -> Tensor:
    """heads [n, n_heads + 2 n_kv_heads, head_dim] with queries and keys normalised; values as they are."""
    n_kv_heads = (heads.shape[1] - n_heads) // 2
    q, k, v = heads.split((n_heads, n_kv_heads, n_kv_heads), dim=1)
    return torch.cat((rms_norm(q, q_norm, eps), rms_norm(k, k_norm, eps), v), dim=1)


def norm_linear(
    x: Tensor, delta: Tensor | None, norm: Tensor, eps: float, weight: Tensor, bias: Tensor | None, gated: bool
) -> tuple[Tensor, Tensor]:
    """(x + delta, linear of its rms_norm); `gated`: silu of the first half of the outputs times the second half."""
    sums, rows = add_rms_norm(x, delta, norm, eps)
    out = linear(rows, weight, bias)
    return sums, silu_mul(out) if gated else out


def rotated_attention(
    heads: Tensor,
    n_heads: int,
    cos: Tensor,
    sin: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """RoPE on queries and keys, keys and values into the cache, then attention.

    heads [n_tokens, n_heads + 2 n_kv_heads, head_dim]: queries, keys and values of each token -> [n_tokens, n_heads,
    head_dim]; the other arguments as for `rotate`, `store_kv` and `paged_attention`.
    """
    n_qk = n_heads + k_cache.shape[1]
    turned = rotate(heads[:, :n_qk], cos, sin)
    store_kv(turned[:, n_heads:], heads[:, n_qk:], k_cache, v_cache, slots)
    return paged_attention(turned[:, :n_heads], k_cache, v_cache, block_tables, query_lens, context_lens, scale)


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows [n, width] of table [rows, width] at index int64 [n]; on a CPU bfloat16 comes as float32."""
    rows = torch.nn.functional.embedding(index, table)
    return rows.to(torch.float32) if rows.is_cpu and rows.dtype is torch.bfloat16 else rows


def quantized_linear(x: Tensor, weight: PackedWeight, bias: Tensor | None = None) -> Tensor:
    """As `linear`, for a matrix of codes: some rows at a time become floats, never all of them."""
    rows = weight.shape[0]
    parts = [linear(x, weight.part(low, min(low + ROWS, rows))) for low in range(0, rows, ROWS)]
    out = torch.cat(parts, dim=1) if parts else x.new_empty(len(x), 0)
    return out if bias is None else out + bias.to(out.dtype)
