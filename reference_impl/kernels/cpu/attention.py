"""Numba kernels: attention over paged keys and values, and storing new ones; float32 or bfloat16 caches.

A task is one token and one KV head with the query heads that share it, so that keys and values are read from memory
once for all of them. A tile of keys at a time, with the online softmax of Milakov and Gimelshein (2018): a running
maximum and total, the output rescaled when the maximum grows. Sums in float32.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu.dots import dot_1
from reference_impl.kernels.cpu.scalars import BF16, DIVISION, F32, FAST, exp, narrow, pointer, take, widen
from reference_impl.kernels.cpu.vectors import key_dots

KEYS = 32  # keys whose scores are held at once
OUT_OF_RANGE = 1  # left in the last argument when a length, table or slot points outside the memory that was given


@njit(fastmath=FAST)
def attend_tile(q, keys, values, scale, weights, out, top, total):  # type: ignore[no-untyped-def]
    """Adds one tile of keys and values to a head's running maximum, total and (unnormalised) output; online softmax."""
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
    """The heads q [group, head_dim] of one token over the first `context` tokens of a table's blocks -> out.

    OUT_OF_RANGE if the table leads out of the cache, else 0.
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
    """One thread's share of the tasks, each the heads that share one KV head, for one token."""
    a = carray(p, 19)
    n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size = a[8], a[9], a[10], a[11], a[12], a[13]
    n_seqs, max_blocks, q_row, group = a[14], a[15], a[16], n_heads // n_kv_heads
    q = carray(pointer(a[1], F32), n_tokens * q_row)
    k_cache = carray(pointer(a[2], cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    v_cache = carray(pointer(a[3], cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    out = carray(pointer(a[4], F32), (n_tokens, n_kv_heads, group, head_dim))
    tables = carray(pointer(a[5], np.int32), (n_seqs, max_blocks))
    query_lens = carray(pointer(a[6], np.int32), n_seqs)
    context_lens = carray(pointer(a[7], np.int32), n_seqs)
    scale = np.float32(a[17:18].view(np.float64)[0])
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
            a[18] = OUT_OF_RANGE
            return
        at = token * q_row + kv_head * group * head_dim
        heads = q[at : at + group * head_dim].reshape(group, head_dim)
        if attend(heads, k_cache, v_cache, tables[seq], kv_head, context, scale, scores, out[token, kv_head]):
            a[18] = OUT_OF_RANGE
            return


@njit
def rotate_head(x, cos, sin, out):  # type: ignore[no-untyped-def]
    """RoPE of one head, all [head_dim] float32; the first half of sin carries the rotation's minus sign."""
    half = x.size // 2
    for j in range(half):
        out[j] = x[j] * cos[j] + x[half + j] * sin[j]
        out[half + j] = x[half + j] * cos[half + j] + x[j] * sin[half + j]


@njit
def rotated_attention(p, cache_type):  # type: ignore[no-untyped-def]
    """RoPE, storing and attention at once: a task is one sequence and one KV head, all its new tokens.

    p: counter, heads, k_cache, v_cache, out, tables, query_lens, context_lens, cos, sin, slots, then numbers. The rows
    of `heads` are a token's query, key and value heads.
    """
    a = carray(p, 22)
    n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size = a[11], a[12], a[13], a[14], a[15], a[16]
    n_seqs, max_blocks, row, group = a[17], a[18], a[19], n_heads // n_kv_heads
    x = carray(pointer(a[1], F32), n_tokens * row)
    k_cache = carray(pointer(a[2], cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    v_cache = carray(pointer(a[3], cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    out = carray(pointer(a[4], F32), (n_tokens, n_kv_heads, group, head_dim))
    tables = carray(pointer(a[5], np.int32), (n_seqs, max_blocks))
    query_lens = carray(pointer(a[6], np.int32), n_seqs)
    context_lens = carray(pointer(a[7], np.int32), n_seqs)
    cos = carray(pointer(a[8], F32), (n_tokens, head_dim))
    sin = carray(pointer(a[9], F32), (n_tokens, head_dim))
    slots = carray(pointer(a[10], np.int64), n_tokens)
    scale = np.float32(a[20:21].view(np.float64)[0])
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
            a[21] = OUT_OF_RANGE
            return
        for token in range(first, end):  # keys and values into the cache first: the tokens see each other
            slot = slots[token]
            if slot >= n_blocks * block_size:
                a[21] = OUT_OF_RANGE
                return
            if slot >= 0:
                block, place = slot // block_size, slot % block_size
                at = token * row + (n_heads + kv_head) * head_dim
                rotate_head(x[at : at + head_dim], cos[token], sin[token], turned[0])
                at += n_kv_heads * head_dim
                for j in range(head_dim):
                    to = k_cache[block, kv_head, place, j]
                    k_cache[block, kv_head, place, j] = narrow(turned[0, j], to)
                    v_cache[block, kv_head, place, j] = narrow(x[at + j], to)
        for token in range(first, end):
            for g in range(group):
                at = token * row + (kv_head * group + g) * head_dim
                rotate_head(x[at : at + head_dim], cos[token], sin[token], turned[g])
            seen = context - (end - 1 - token)
            if attend(turned, k_cache, v_cache, tables[seq], kv_head, seen, scale, scores, out[token, kv_head]):
                a[21] = OUT_OF_RANGE
                return


@njit
def store(p, new_type, cache_type):  # type: ignore[no-untyped-def]
    a = carray(p, 14)
    n_tokens, n_kv_heads, head_dim, n_blocks, block_size, k_row, v_row = a[6], a[7], a[8], a[9], a[10], a[11], a[12]
    k = carray(pointer(a[1], new_type), n_tokens * k_row)
    v = carray(pointer(a[2], new_type), n_tokens * v_row)
    k_cache = carray(pointer(a[3], cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    v_cache = carray(pointer(a[4], cache_type), (n_blocks, n_kv_heads, block_size, head_dim))
    slots = carray(pointer(a[5], np.int64), n_tokens)
    while True:
        token = take(p, np.int64(1))
        if token >= n_tokens:
            return
        slot = slots[token]
        if slot >= n_blocks * block_size:
            a[13] = OUT_OF_RANGE
            return
        if slot >= 0:
            block, place = slot // block_size, slot % block_size
            for h in range(n_kv_heads):
                for j in range(head_dim):
                    to = k_cache[block, h, place, j]
                    k_cache[block, h, place, j] = narrow(widen(k[token * k_row + h * head_dim + j]), to)
                    v_cache[block, h, place, j] = narrow(widen(v[token * v_row + h * head_dim + j]), to)


def attention_f32(p):  # type: ignore[no-untyped-def]
    attention(p, F32)


def attention_bf16(p):  # type: ignore[no-untyped-def]
    attention(p, BF16)


def rotated_attention_f32(p):  # type: ignore[no-untyped-def]
    rotated_attention(p, F32)


def rotated_attention_bf16(p):  # type: ignore[no-untyped-def]
    rotated_attention(p, BF16)


def store_f32(p):  # type: ignore[no-untyped-def]
    store(p, F32, F32)


def store_bf16(p):  # type: ignore[no-untyped-def]
    store(p, F32, BF16)
