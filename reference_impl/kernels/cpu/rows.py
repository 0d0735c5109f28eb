"""Numba kernels for the small steps between the matrices, each one pass over a row: RMSNorm, RoPE, SiLU times gate.

In PyTorch they are two to six calls each. At batch 1 a call costs more than its arithmetic, and a decode step of
SmolLM2 has five hundred of them, so fusing them is worth as much as a faster matrix product. float32 rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu.attention import OUT_OF_RANGE, rotate_head
from reference_impl.kernels.cpu.linear import keep_and_square
from reference_impl.kernels.cpu.scalars import BF16, F32, exp, pointer, take, widen


@njit
def norm_row(x, weight, eps, out):  # type: ignore[no-untyped-def]
    scale = np.float32(1 / math.sqrt(keep_and_square(x, x[:0], out) / x.size + eps))
    for j in range(x.size):
        out[j] = out[j] * scale * widen(weight[j])


@njit
def rms_norm(p, weight_type):  # type: ignore[no-untyped-def]
    """p: counter, x, weight, out, n, width, bits of eps."""
    a = carray(p, 7)
    n, width = a[4], a[5]
    x, out = carray(pointer(a[1], F32), (n, width)), carray(pointer(a[3], F32), (n, width))
    weight = carray(pointer(a[2], weight_type), width)
    eps = a[6:7].view(np.float64)[0]
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        norm_row(x[i], weight, eps, out[i])


@njit
def norm_heads(p, weight_type):  # type: ignore[no-untyped-def]
    """p: counter, heads, q_norm, k_norm, out, n, query heads, all heads, head_dim, bits of eps. Values are copied."""
    a = carray(p, 10)
    n, n_queries, n_all, width = a[5], a[6], a[7], a[8]
    x, out = carray(pointer(a[1], F32), (n, n_all, width)), carray(pointer(a[4], F32), (n, n_all, width))
    eps = a[9:10].view(np.float64)[0]
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        n_normed = (n_queries + n_all) // 2
        for h in range(n_normed):
            weight = carray(pointer(a[2] if h < n_queries else a[3], weight_type), width)
            norm_row(x[i, h], weight, eps, out[i, h])
        out[i, n_normed:] = x[i, n_normed:]


def norm_heads_f32(p):  # type: ignore[no-untyped-def]
    norm_heads(p, F32)


def norm_heads_bf16(p):  # type: ignore[no-untyped-def]
    norm_heads(p, BF16)


def rms_norm_f32(p):  # type: ignore[no-untyped-def]
    rms_norm(p, F32)


def rms_norm_bf16(p):  # type: ignore[no-untyped-def]
    rms_norm(p, BF16)


def rotate_f32(p):  # type: ignore[no-untyped-def]
    """p: counter, x, cos, sin, out, n, heads, head_dim, values from one row of x to the next."""
    a = carray(p, 9)
    n, heads, width, row = a[5], a[6], a[7], a[8]
    x, out = carray(pointer(a[1], F32), n * row), carray(pointer(a[4], F32), (n, heads, width))
    cos, sin = carray(pointer(a[2], F32), (n, width)), carray(pointer(a[3], F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        for h in range(heads):
            rotate_head(x[i * row + h * width : i * row + (h + 1) * width], cos[i], sin[i], out[i, h])


def silu_mul_f32(p):  # type: ignore[no-untyped-def]
    """p: counter, x, out, n, width of out."""
    a = carray(p, 5)
    n, width = a[3], a[4]
    x, out = carray(pointer(a[1], F32), (n, 2 * width)), carray(pointer(a[2], F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        for j in range(width):
            out[i, j] = x[i, j] / (np.float32(1) + exp(-x[i, j])) * x[i, width + j]


@njit
def look_up(p, table_type):  # type: ignore[no-untyped-def]
    """p: counter, table, index, out, n, rows, width, status."""
    a = carray(p, 8)
    n, rows, width = a[4], a[5], a[6]
    table, index = carray(pointer(a[1], table_type), (rows, width)), carray(pointer(a[2], np.int64), n)
    out = carray(pointer(a[3], F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        row = index[i]
        if row < 0 or row >= rows:
            a[7] = OUT_OF_RANGE
            return
        for j in range(width):
            out[i, j] = widen(table[row, j])


def look_up_f32(p):  # type: ignore[no-untyped-def]
    look_up(p, F32)


def look_up_bf16(p):  # type: ignore[no-untyped-def]
    look_up(p, BF16)
