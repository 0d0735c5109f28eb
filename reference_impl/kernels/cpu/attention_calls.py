"""Keys and values on a CPU: storing new ones, and attention over those in the cache.

Which inputs the kernels of `cpu_attention` take, and how they are called; a long chunk over a long context is torch's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.kernels.cpu.attention import OUT_OF_RANGE
from reference_impl.kernels.cpu.call import SUFFIX, bits, float32, kernel, on_cpu, with_packed_heads
from reference_impl.kernels.cpu.row_calls import takes_rotation

LONG_CHUNK = 64  # new tokens of a sequence ...
LONG_CONTEXT = 512  # ... and its context, from which torch's attention on gathered blocks is faster (up to 2.6 times)


def takes_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    _: float,
) -> bool:
    """Half or single precision, index tensors in int32."""
    indices = (block_tables, query_lens, context_lens)
    return (
        q.dtype in SUFFIX
        and k_cache.dtype in SUFFIX
        and v_cache.dtype is k_cache.dtype
        and all(index.dtype is torch.int32 for index in indices)
        and on_cpu(q, k_cache, v_cache, *indices)
    )


def paged_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """As `reference.paged_attention`, for float32 or bfloat16. IndexError for a block that is not in the cache."""
    arguments = (q, k_cache, v_cache, block_tables, query_lens, context_lens, scale)
    if len(q) < LONG_CHUNK or block_tables.shape[1] * k_cache.shape[2] < LONG_CONTEXT:
        return _from_blocks(*arguments)
    parts, first = [], 0
    for seq, (new, context) in enumerate(zip(query_lens.tolist(), context_lens.tolist(), strict=True)):
        own = slice(seq, seq + 1)
        attend = _gathered if new >= LONG_CHUNK and context >= LONG_CONTEXT else _from_blocks
        rows = q[first : first + new]
        parts.append(attend(rows, k_cache, v_cache, block_tables[own], query_lens[own], context_lens[own], scale))
        first += new
    if first != len(q):
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, len(q))
    return torch.cat(parts)


def _gathered(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """One sequence's long chunk: its blocks copied together, then torch's own attention."""
    _, n_kv_heads, block_size, head_dim = k_cache.shape
    new, context = len(q), int(context_lens[0])
    blocks = block_tables[0, : -(-context // block_size)].long()
    if not new <= context <= len(blocks) * block_size or int(blocks.min()) < 0 or int(blocks.max()) >= len(k_cache):
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, new)
    keys, values = (
        cache[blocks].transpose(0, 1).reshape(1, n_kv_heads, -1, head_dim)[:, :, :context].to(torch.float32)
        for cache in (k_cache, v_cache)
    )
    seen = torch.ones(new, context, dtype=torch.bool).tril(context - new)
    queries = float32(q).transpose(0, 1)[None]
    out = torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=seen, scale=scale, enable_gqa=True
    )
    return out[0].transpose(0, 1).to(q.dtype)


def _from_blocks(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """The kernel that reads keys and values where they lie."""
    n_tokens, n_heads, head_dim = q.shape
    n_blocks, n_kv_heads, block_size, _ = k_cache.shape
    queries = with_packed_heads(float32(q))
    out = torch.empty(n_tokens, n_heads, head_dim, dtype=torch.float32)
    status = kernel("attention", k_cache.dtype).run(
        *(queries, k_cache, v_cache, out, block_tables, query_lens, context_lens),
        *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(query_lens)),
        *(block_tables.shape[1], queries.stride(0), bits(scale)),
    )
    if status == OUT_OF_RANGE:
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, n_tokens)
    return out if q.dtype is torch.float32 else out.to(q.dtype)


def takes_rotated_attention(
    heads: Tensor,
    cos: Tensor,
    sin: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
) -> bool:
    """Decode and verification steps: a task is a sequence, and there should be enough of them for the threads."""
    few = len(heads) <= 8 * len(query_lens)
    return (
        few
        and takes_rotation(heads, cos, sin)
        and takes_store(heads, k_cache, v_cache, slots)
        and takes_attention(heads, k_cache, v_cache, block_tables, query_lens, context_lens, 1.0)
    )


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
    """As `reference.rotated_attention`, in one call. IndexError for a slot or block that is not in the cache."""
    heads = with_packed_heads(heads)
    n_tokens, _, head_dim = heads.shape
    n_blocks, n_kv_heads, block_size, _ = k_cache.shape
    out = torch.empty(n_tokens, n_heads, head_dim, dtype=torch.float32)
    status = kernel("rotated_attention", k_cache.dtype).run(
        *(heads, k_cache, v_cache, out, block_tables, query_lens, context_lens, cos, sin, slots),
        *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(query_lens)),
        *(block_tables.shape[1], heads.stride(0), bits(scale)),
    )
    if status == OUT_OF_RANGE:
        _require_slots(slots, k_cache)
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, n_tokens)
    return out


def takes_store(k: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> bool:
    return k_cache.dtype in SUFFIX and slots.dtype is torch.int64 and on_cpu(k, k_cache, v_cache, slots)


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """As `reference.store_kv`. IndexError for a slot beyond the cache."""
    n_tokens, n_kv_heads, head_dim = k.shape
    n_blocks, _, block_size, _ = k_cache.shape
    k, v = with_packed_heads(float32(k)), with_packed_heads(float32(v))
    status = kernel("store", k_cache.dtype).run(
        *(k, v, k_cache, v_cache, slots, n_tokens, n_kv_heads, head_dim, n_blocks, block_size),
        *(k.stride(0), v.stride(0)),
        alone=n_tokens < 64,
    )
    if status == OUT_OF_RANGE:
        _require_slots(slots, k_cache)


def _require_slots(slots: Tensor, k_cache: Tensor) -> None:
    n_blocks, _, block_size, _ = k_cache.shape
    if int(slots.max()) >= n_blocks * block_size:
        raise IndexError(f"slots {slots.tolist()} do not fit a cache of {n_blocks} blocks of {block_size}")


def _out_of_range(
    k_cache: Tensor, block_tables: Tensor, query_lens: Tensor, context_lens: Tensor, n_tokens: int
) -> IndexError:
    return IndexError(
        f"lengths {query_lens.tolist()} of contexts {context_lens.tolist()} with tables {block_tables.tolist()} "
        f"do not fit {n_tokens} new tokens in a cache of {len(k_cache)} blocks of {k_cache.shape[2]}"
    )
