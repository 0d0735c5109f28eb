"""Triton kernels for attention over paged keys and values, and for storing new ones.

A program takes one KV head and a tile of rows: a few new tokens of one sequence, times the query heads that share the
KV head, so that keys and values are read once for all of these. One kernel serves decode, verification and prefill
chunks. If there are few sequences, a long context is split over several programs, whose results are merged by their
log-sums: Flash-Decoding (Dao et al. 2023), on the online softmax of FlashAttention (Dao et al. 2022). Grids and buffers
depend only on shapes, and tables stay on the device, so a step can be captured in a CUDA graph.
"""

from __future__ import annotations

import os
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from reference_impl.kernels.paged import PagedKV

KEYS = 64  # most keys in a step of the inner loop
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def paged_attention(q: Tensor, kv: PagedKV, layer: int) -> Tensor:
    """As `kernels.paged_attention`, without a check of blocks and lengths, which would wait for the device."""
    k_cache, v_cache = kv.layers[layer]
    n_tokens, n_heads, head_dim = q.shape
    _, n_kv_heads, block_size, _ = k_cache.shape
    n_seqs, max_blocks = kv.block_tables.shape
    group = triton.next_power_of_2(n_heads // n_kv_heads)
    rows = max(16 if n_tokens <= 4 * n_seqs else 64, group)  # tl.dot needs at least 16
    tokens = rows // group
    tiles = min(n_tokens, n_tokens // tokens + n_seqs)  # an upper bound: each sequence fills whole tiles
    splits = _splits(tiles * n_kv_heads, triton.cdiv(max_blocks * block_size, KEYS), q.device)
    out = torch.empty((n_tokens, n_heads, head_dim), dtype=q.dtype, device=q.device)
    partial = torch.empty((splits, n_tokens, n_heads, head_dim), dtype=torch.float32, device=q.device)
    log_sum = torch.empty((splits, n_tokens, n_heads), dtype=torch.float32, device=q.device)
    width = triton.next_power_of_2(head_dim)
    step = keys_at_once(k_cache.dtype, width)
    _attention[(tiles, n_kv_heads, splits)](
        *(q, k_cache, v_cache, kv.block_tables, kv.query_lens, kv.context_lens, partial, log_sum, head_dim**-0.5),
        *(n_tokens, n_heads, n_kv_heads, n_seqs, max_blocks, q.stride(0), q.stride(1)),
        SEQS=triton.next_power_of_2(n_seqs),
        HEAD_DIM=head_dim,
        BLOCK_SIZE=block_size,
        SPLITS=splits,
        GROUP=group,
        TOKENS=tokens,
        WIDTH=max(16, width),
        STEP=step,
        WIDEN=INTERPRETED,
    )
    _merge[(n_tokens, n_heads)](partial, log_sum, out, n_tokens, n_heads, HEAD_DIM=head_dim, SPLITS=splits, WIDTH=width)
    return out


def keys_at_once(dtype: torch.dtype, width: int) -> int:
    """Keys in a step of the inner loop: fewer for wide float32 heads, to fit an RTX card's shared memory too."""
    return KEYS // 2 if dtype is torch.float32 and width >= 128 else KEYS


def store_kv(k: Tensor, v: Tensor, kv: PagedKV, layer: int) -> None:
    """As `kernels.store_kv`, without a check of slots."""
    k_cache, v_cache = kv.layers[layer]
    n_tokens, n_kv_heads, head_dim = k.shape
    _store[(n_tokens, n_kv_heads)](
        *(k, v, k_cache, v_cache, kv.slots, *k.stride(), *v.stride(), n_kv_heads),
        HEAD_DIM=head_dim,
        BLOCK_SIZE=k_cache.shape[2],
        WIDTH=triton.next_power_of_2(head_dim),
    )


def _splits(programs: int, most: int, device: torch.device) -> int:
    """How many parts to split each context into: enough programs for every multiprocessor twice, few parts to merge."""
    wanted = triton.cdiv(2 * _multiprocessors(device), programs)
    return int(triton.next_power_of_2(max(1, min(wanted, most, 64))))


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


# A server's batches change all the time, so these numbers must not be compiled into the kernel.
@triton.jit(do_not_specialize=["n_tokens", "n_seqs", "max_blocks"])
def _attention(  # type: ignore[no-untyped-def]
    q,
    k_cache,
    v_cache,
    block_tables,
    query_lens,
    context_lens,
    partial,
    log_sum,
    scale,
    n_tokens,
    n_heads,
    n_kv_heads,
    n_seqs,
    max_blocks,
    q_token,
    q_head,
    SEQS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    SPLITS: tl.constexpr,
    GROUP: tl.constexpr,
    TOKENS: tl.constexpr,
    WIDTH: tl.constexpr,
    STEP: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Attention of one tile of rows to one part of its sequence's context: partial outputs and log-sums."""
    tile, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)

    # Find the tile's sequence. A sequence fills whole tiles; tiles at the end may be unused.
    seqs = tl.arange(0, SEQS)
    lens = tl.load(query_lens + seqs, mask=seqs < n_seqs, other=0)
    tiles = (lens + TOKENS - 1) // TOKENS
    seq = tl.sum((tl.cumsum(tiles, 0) <= tile).to(tl.int32))
    if seq >= n_seqs:
        return
    n_new = tl.sum(tl.where(seqs == seq, lens, 0))
    n_context = tl.load(context_lens + seq)
    first_row = tl.sum(tl.where(seqs < seq, lens, 0))  # the sequence's first among the packed tokens
    first_new = (tile - tl.sum(tl.where(seqs < seq, tiles, 0))) * TOKENS  # the tile's first of these

    # A row is a token and a head, both padded to powers of two.
    rows = tl.arange(0, TOKENS * GROUP)
    columns = tl.arange(0, WIDTH)
    new, member, shared = first_new + rows // GROUP, rows % GROUP, n_heads // n_kv_heads
    real = (new < n_new) & (member < shared)
    token, head = first_row + new, kv_head * shared + member
    queries = tl.load(
        q + token[:, None].to(tl.int64) * q_token + head[:, None] * q_head + columns[None, :],
        mask=real[:, None] & (columns < HEAD_DIM)[None, :],
        other=0.0,
    ).to(k_cache.dtype.element_ty)
    position = n_context - n_new + new

    # This part of the context, as far as the tile's last token may attend.
    seen = tl.minimum(n_context, n_context - n_new + first_new + TOKENS)
    span = tl.cdiv(tl.cdiv(seen, STEP), SPLITS) * STEP
    top = tl.full((TOKENS * GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((TOKENS * GROUP,), tl.float32)
    mixed = tl.zeros((TOKENS * GROUP, WIDTH), tl.float32)
    for start in range(split * span, tl.minimum(seen, (split + 1) * span), STEP):
        key = start + tl.arange(0, STEP)
        block = tl.load(block_tables + seq * max_blocks + key // BLOCK_SIZE, mask=key < seen, other=0).to(tl.int64)
        place = ((block * n_kv_heads + kv_head) * BLOCK_SIZE + key % BLOCK_SIZE) * HEAD_DIM
        inside = (key < seen)[:, None] & (columns < HEAD_DIM)[None, :]
        keys = tl.load(k_cache + place[:, None] + columns[None, :], mask=inside, other=0.0)
        values = tl.load(v_cache + place[:, None] + columns[None, :], mask=inside, other=0.0)
        if WIDEN:  # the interpreter would multiply bfloat16 as integers
            queries, keys, values = queries.to(tl.float32), keys.to(tl.float32), values.to(tl.float32)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where(key[None, :] <= position[:, None], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        finite_top = tl.where(new_top == float("-inf"), 0.0, new_top)  # a row that has seen no key yet
        weights = tl.exp(scores - finite_top[:, None])
        shrink = tl.exp(top - finite_top)
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        top = new_top

    index = (split * n_tokens + token.to(tl.int64)) * n_heads + head
    empty = total == 0
    tl.store(log_sum + index, tl.where(empty, float("-inf"), top + tl.log(tl.where(empty, 1.0, total))), mask=real)
    tl.store(
        partial + index[:, None] * HEAD_DIM + columns[None, :],
        mixed / tl.where(empty, 1.0, total)[:, None],
        mask=real[:, None] & (columns < HEAD_DIM)[None, :],
    )


@triton.jit(do_not_specialize=["n_tokens"])
def _merge(  # type: ignore[no-untyped-def]
    partial, log_sum, out, n_tokens, n_heads, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr, WIDTH: tl.constexpr
):
    """Adds up the parts' outputs, each weighed by its share of the softmax sum."""
    row = tl.program_id(0).to(tl.int64) * n_heads + tl.program_id(1)
    splits, columns = tl.arange(0, SPLITS), tl.arange(0, WIDTH)
    index = splits.to(tl.int64) * n_tokens * n_heads + row
    logs = tl.load(log_sum + index)
    weights = tl.exp(logs - tl.max(logs, 0))
    parts = tl.load(
        partial + index[:, None] * HEAD_DIM + columns[None, :], mask=(columns < HEAD_DIM)[None, :], other=0.0
    )
    mixed = tl.sum(parts * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(out + row * HEAD_DIM + columns, mixed.to(out.dtype.element_ty), mask=columns < HEAD_DIM)


@triton.jit
def _store(  # type: ignore[no-untyped-def]
    k,
    v,
    k_cache,
    v_cache,
    slots,
    k_token,
    k_head,
    k_column,
    v_token,
    v_head,
    v_column,
    n_kv_heads,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Writes the key and value of one token and head into their slot."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot = tl.load(slots + token)
    if slot < 0:
        return
    columns = tl.arange(0, WIDTH)
    target = ((slot // BLOCK_SIZE * n_kv_heads + head) * BLOCK_SIZE + slot % BLOCK_SIZE) * HEAD_DIM + columns
    inside = columns < HEAD_DIM
    key = tl.load(k + token * k_token + head * k_head + columns * k_column, mask=inside)
    value = tl.load(v + token * v_token + head * v_head + columns * v_column, mask=inside)
    tl.store(k_cache + target, key.to(k_cache.dtype.element_ty), mask=inside)
    tl.store(v_cache + target, value.to(v_cache.dtype.element_ty), mask=inside)
