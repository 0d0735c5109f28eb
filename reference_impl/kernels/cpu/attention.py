"""Numba kernels for attention over paged keys and values, and for storing new ones; float32 or bfloat16 caches.

A task is one token and one KV head with the query heads that share it, so that keys and values are read from memory
once for all of these. Keys are taken a tile at a time with the online softmax of Milakov and Gimelshein (2018): a
running maximum and total, and an output that is rescaled when the maximum grows. Sums are float32.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu.dots import dot_1
from reference_impl.kernels.cpu.records import ATTENTION, ROTATED_ATTENTION, STORE
from reference_impl.kernels.cpu.scalars import BF16, DIVISION, F32, FAST, exp, fields, narrow, pointer, take, widen
from reference_impl.kernels.cpu.vectors import key_dots

KEYS = 32  # keys of a tile
OUT_OF_RANGE = 1  # status: a length, table or slot points outside the memory that was given


@njit(fastmath=FAST)
def attend_tile(q, keys, values, scale, weights, out, top, total):  # type: ignore[no-untyped-def]
    """Adds one tile of keys and values to a head's running maximum, total and output, which is not normalised yet."""
    new_top, n = top, len(keys)
    whole = n - n % 4
    together = whole if q.size % 8 == 0 else 0
    for t in range(0, together, 4):
        key_dots(keys, keys[t].ctypes.data, q.size, q.ctypes.data, weights[t:].ctypes.data, q.size)
    for t in range(together, n):
        weights[t] = dot_1(keys[t], q)
    for t in range(n):
        weights[t] *= scale
        new_top = max(new_top, weights[t])
    shrink = exp(top - new_top)
    total *= shrink
    for t in range(n):
        weights[t] = exp(weights[t] - new_top)
        total += weights[t]
    for j in range(out.size):
        out[j] *= shrink
    for t in range(0, whole, 4):  # four values at a time: the output is loaded and stored less often
        w0, w1, w2, w3 = weights[t], weights[t + 1], weights[t + 2], weights[t + 3]
        v0, v1, v2, v3 = values[t], values[t + 1], values[t + 2], values[t + 3]
        for j in range(out.size):
            out[j] += w0 * widen(v0[j]) + w1 * widen(v1[j]) + w2 * widen(v2[j]) + w3 * widen(v3[j])
    for t in range(whole, n):
        v, w = values[t], weights[t]
        for j in range(out.size):
            out[j] += w * widen(v[j])
    return new_top, total


@njit(error_model=DIVISION)
def attend(q, k_cache, v_cache, table, kv_head, context, scale, scores, out):  # type: ignore[no-untyped-def]
    """Attention of one token's heads q [group, head_dim] to the first `context` tokens of a block table -> out.

    Returns OUT_OF_RANGE if the table leads out of the cache, else 0.
    """
    n_blocks, block_size = k_cache.shape[0], k_cache.shape[2]
    top, total = np.full(len(q), -np.inf, np.float32), np.zeros(len(q), np.float32)
    out[:] = 0
    for start in range(0, context, block_size):
        block = table[start // block_size]
        if block < 0 or block >= n_blocks:
            return OUT_OF_RANGE
        filled = min(block_size, context - start)
        for low in range(0, filled, KEYS):
            high = min(low + KEYS, filled)
            keys, values = k_cache[block, kv_head, low:high], v_cache[block, kv_head, low:high]
            for g in range(len(q)):
                top[g], total[g] = attend_tile(q[g], keys, values, scale, scores, out[g], top[g], total[g])
    for g in range(len(q)):
        for j in range(q.shape[1]):
            out[g, j] /= total[g]
    return 0


@njit
def attention(p, cache_type):  # type: ignore[no-untyped-def]
    """Does one thread's share of the tasks: one token and one KV head each."""
    call = fields(p, ATTENTION)
    n_tokens, n_kv_heads, head_dim, row = call.n_tokens, call.n_kv_heads, call.head_dim, call.row
    n_blocks, block_size, n_seqs, max_blocks = call.n_blocks, call.block_size, call.n_seqs, call.max_blocks
    group = call.n_heads // n_kv_heads
    q = carray(pointer(call.q, F32), n_tokens * row)
    keys = carray(pointer(call.keys, cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    values = carray(pointer(call.values, cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    out = carray(pointer(call.out, F32), (n_tokens, n_kv_heads, group, head_dim))
    tables = carray(pointer(call.tables, np.int32), (n_seqs, max_blocks))
    query_lens = carray(pointer(call.query_lens, np.int32), n_seqs)
    context_lens = carray(pointer(call.context_lens, np.int32), n_seqs)
    scale = np.float32(call.scale)
    scores = np.empty(KEYS, np.float32)
    while True:
        task = take(p, np.int64(1))
        if task >= n_tokens * n_kv_heads:
            return
        token, kv_head = task // n_kv_heads, task % n_kv_heads
        seq, end = 0, query_lens[0]
        while token >= end and seq + 1 < n_seqs:
            seq += 1
            end += query_lens[seq]
        context = context_lens[seq] - (end - 1 - token)  # this token and all before it
        if token >= end or context < 1 or context > max_blocks * block_size:
            call.status = OUT_OF_RANGE
            return
        at = token * row + kv_head * group * head_dim
        heads = q[at : at + group * head_dim].reshape(group, head_dim)
        if attend(heads, keys, values, tables[seq], kv_head, context, scale, scores, out[token, kv_head]):
            call.status = OUT_OF_RANGE
            return


@njit
def rotate_head(x, cos, sin, out):  # type: ignore[no-untyped-def]
    """RoPE of one head, everything float32 [head_dim]. The first half of sin carries the rotation's minus sign."""
    half = x.size // 2
    for j in range(half):
        out[j] = x[j] * cos[j] + x[half + j] * sin[j]
        out[half + j] = x[half + j] * cos[half + j] + x[j] * sin[half + j]


@njit
def rotated_attention(p, cache_type):  # type: ignore[no-untyped-def]
    """RoPE, storing and attention in one kernel. A task is one sequence and one KV head, with all its new tokens.

    A row of `heads` holds a token's query, key and value heads.
    """
    call = fields(p, ROTATED_ATTENTION)
    n_tokens, n_heads, n_kv_heads, head_dim = call.n_tokens, call.n_heads, call.n_kv_heads, call.head_dim
    n_blocks, block_size, n_seqs, max_blocks = call.n_blocks, call.block_size, call.n_seqs, call.max_blocks
    row, group = call.row, n_heads // n_kv_heads
    x = carray(pointer(call.heads, F32), n_tokens * row)
    keys = carray(pointer(call.keys, cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    values = carray(pointer(call.values, cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    out = carray(pointer(call.out, F32), (n_tokens, n_kv_heads, group, head_dim))
    tables = carray(pointer(call.tables, np.int32), (n_seqs, max_blocks))
    query_lens = carray(pointer(call.query_lens, np.int32), n_seqs)
    context_lens = carray(pointer(call.context_lens, np.int32), n_seqs)
    cos = carray(pointer(call.cos, F32), (n_tokens, head_dim))
    sin = carray(pointer(call.sin, F32), (n_tokens, head_dim))
    slots = carray(pointer(call.slots, np.int64), n_tokens)
    scale = np.float32(call.scale)
    scores, turned = np.empty(KEYS, np.float32), np.empty((group, head_dim), np.float32)
    while True:
        task = take(p, np.int64(1))
        if task >= n_seqs * n_kv_heads:
            return
        seq, kv_head = task // n_kv_heads, task % n_kv_heads
        first = np.int64(0)
        for earlier in range(seq):
            first += query_lens[earlier]
        end = first + query_lens[seq]
        context = context_lens[seq]
        short = end < n_tokens if seq + 1 == n_seqs else False
        if short or end > n_tokens or context < query_lens[seq] or context > max_blocks * block_size:
            call.status = OUT_OF_RANGE
            return
        for token in range(first, end):  # first all keys and values, since the new tokens attend to each other
            slot = slots[token]
            if slot >= n_blocks * block_size:
                call.status = OUT_OF_RANGE
                return
            if slot >= 0:
                block, place = slot // block_size, slot % block_size
                at = token * row + (n_heads + kv_head) * head_dim
                rotate_head(x[at : at + head_dim], cos[token], sin[token], turned[0])
                at += n_kv_heads * head_dim
                for j in range(head_dim):
                    to = keys[block, kv_head, place, j]
                    keys[block, kv_head, place, j] = narrow(turned[0, j], to)
                    values[block, kv_head, place, j] = narrow(x[at + j], to)
        for token in range(first, end):
            for g in range(group):
                at = token * row + (kv_head * group + g) * head_dim
                rotate_head(x[at : at + head_dim], cos[token], sin[token], turned[g])
            seen = context - (end - 1 - token)
            if attend(turned, keys, values, tables[seq], kv_head, seen, scale, scores, out[token, kv_head]):
                call.status = OUT_OF_RANGE
                return


@njit
def store(p, cache_type):  # type: ignore[no-untyped-def]
    """Writes keys and values, float32, into their slots: one thread's share of the tokens."""
    call = fields(p, STORE)
    n_tokens, n_kv_heads, head_dim, k_row, v_row = call.n_tokens, call.n_kv_heads, call.head_dim, call.k_row, call.v_row
    n_blocks, block_size = call.n_blocks, call.block_size
    k = carray(pointer(call.k, F32), n_tokens * k_row)
    v = carray(pointer(call.v, F32), n_tokens * v_row)
    keys = carray(pointer(call.keys, cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    values = carray(pointer(call.values, cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    slots = carray(pointer(call.slots, np.int64), n_tokens)
    while True:
        token = take(p, np.int64(1))
        if token >= n_tokens:
            return
        slot = slots[token]
        if slot >= n_blocks * block_size:
            call.status = OUT_OF_RANGE
            return
        if slot >= 0:
            block, place = slot // block_size, slot % block_size
            for h in range(n_kv_heads):
                for j in range(head_dim):
                    to = keys[block, h, place, j]
                    keys[block, h, place, j] = narrow(k[token * k_row + h * head_dim + j], to)
                    values[block, h, place, j] = narrow(v[token * v_row + h * head_dim + j], to)


def attention_f32(p):  # type: ignore[no-untyped-def]
    attention(p, F32)


def attention_bf16(p):  # type: ignore[no-untyped-def]
    attention(p, BF16)


def rotated_attention_f32(p):  # type: ignore[no-untyped-def]
    rotated_attention(p, F32)


def rotated_attention_bf16(p):  # type: ignore[no-untyped-def]
    rotated_attention(p, BF16)


def store_f32(p):  # type: ignore[no-untyped-def]
    store(p, F32)


def store_bf16(p):  # type: ignore[no-untyped-def]
    store(p, BF16)
