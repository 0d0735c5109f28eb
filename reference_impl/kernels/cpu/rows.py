"""Numba kernels for the small steps between the matrices: RMSNorm, RoPE, SiLU times gate, and look-ups.

Each is one pass over rows of float32, where PyTorch needs two to six calls. At batch 1 a call costs more than its
arithmetic, and a decode step of SmolLM2 has five hundred of them, so fusing them is worth as much as a faster matrix
product.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu.attention import OUT_OF_RANGE, rotate_head
from reference_impl.kernels.cpu.linear import keep_and_square
from reference_impl.kernels.cpu.records import LOOK_UP, NORM_HEADS, RMS_NORM, ROTATE, SILU_MUL
from reference_impl.kernels.cpu.scalars import BF16, F32, exp, fields, pointer, take, widen


@njit
def norm_row(x, weight, eps, out):  # type: ignore[no-untyped-def]
    scale = np.float32(1 / math.sqrt(keep_and_square(x, x[:0], out) / x.size + eps))
    for j in range(x.size):
        out[j] = out[j] * scale * widen(weight[j])


@njit
def rms_norm(p, weight_type):  # type: ignore[no-untyped-def]
    call = fields(p, RMS_NORM)
    n, width, eps = call.n, call.width, call.eps
    x, out = carray(pointer(call.x, F32), (n, width)), carray(pointer(call.out, F32), (n, width))
    weight = carray(pointer(call.weight, weight_type), width)
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        norm_row(x[i], weight, eps, out[i])


@njit
def norm_heads(p, weight_type):  # type: ignore[no-untyped-def]
    """Normalises query and key heads, and copies value heads."""
    call = fields(p, NORM_HEADS)
    n, n_queries, n_all, width, eps = call.n, call.n_queries, call.n_all, call.head_dim, call.eps
    x, out = carray(pointer(call.heads, F32), (n, n_all, width)), carray(pointer(call.out, F32), (n, n_all, width))
    q_norm, k_norm = carray(pointer(call.q_norm, weight_type), width), carray(pointer(call.k_norm, weight_type), width)
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        n_normed = (n_queries + n_all) // 2
        for h in range(n_normed):
            norm_row(x[i, h], q_norm if h < n_queries else k_norm, eps, out[i, h])
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
    call = fields(p, ROTATE)
    n, n_heads, width, row = call.n, call.n_heads, call.head_dim, call.row
    x, out = carray(pointer(call.x, F32), n * row), carray(pointer(call.out, F32), (n, n_heads, width))
    cos, sin = carray(pointer(call.cos, F32), (n, width)), carray(pointer(call.sin, F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        for h in range(n_heads):
            rotate_head(x[i * row + h * width : i * row + (h + 1) * width], cos[i], sin[i], out[i, h])


def silu_mul_f32(p):  # type: ignore[no-untyped-def]
    call = fields(p, SILU_MUL)
    n, width = call.n, call.width
    x, out = carray(pointer(call.x, F32), (n, 2 * width)), carray(pointer(call.out, F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        for j in range(width):
            out[i, j] = x[i, j] / (np.float32(1) + exp(-x[i, j])) * x[i, width + j]


@njit
def look_up(p, table_type):  # type: ignore[no-untyped-def]
    call = fields(p, LOOK_UP)
    n, n_rows, width = call.n, call.n_rows, call.width
    table, index = carray(pointer(call.table, table_type), (n_rows, width)), carray(pointer(call.index, np.int64), n)
    out = carray(pointer(call.out, F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        row = index[i]
        if row < 0 or row >= n_rows:
            call.status = OUT_OF_RANGE
            return
        for j in range(width):
            out[i, j] = widen(table[row, j])


def look_up_f32(p):  # type: ignore[no-untyped-def]
    look_up(p, F32)


def look_up_bf16(p):  # type: ignore[no-untyped-def]
    look_up(p, BF16)
