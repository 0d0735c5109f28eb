"""Numba kernels for the small steps between the matrices, each one pass over a row: RMSNorm, RoPE, SiLU times gate.

In PyTorch they are two to six calls each. At batch 1 a call costs more than its arithmetic, and a decode step of
SmolLM2 has five hundred of them, so fusing them is worth as much as a faster matrix product. float32 rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit

from reference_impl.kernels.threads import BF16, F32, FAST, exp, pointer, take, widen


@njit(fastmath=FAST)
def sum_of_squares(x):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for j in range(x.size):
        total += x[j] * x[j]
    return total


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
        scale = np.float32(1 / math.sqrt(sum_of_squares(x[i]) / width + eps))
        for j in range(width):
            out[i, j] = x[i, j] * scale * widen(weight[j])


def rms_norm_f32(p):  # type: ignore[no-untyped-def]
    rms_norm(p, F32)


def rms_norm_bf16(p):  # type: ignore[no-untyped-def]
    rms_norm(p, BF16)


def rotate_f32(p):  # type: ignore[no-untyped-def]
    """p: counter, x, cos, sin, out, n, heads, head_dim, values from one row of x to the next."""
    a = carray(p, 9)
    n, heads, width, row = a[5], a[6], a[7], a[8]
    half = width // 2
    x, out = carray(pointer(a[1], F32), n * row), carray(pointer(a[4], F32), (n, heads, width))
    cos, sin = carray(pointer(a[2], F32), (n, width)), carray(pointer(a[3], F32), (n, width))
    while True:
        i = take(p, np.int64(1))
        if i >= n:
            return
        for h in range(heads):
            head = x[i * row + h * width : i * row + (h + 1) * width]
            for j in range(half):
                out[i, h, j] = head[j] * cos[i, j] + head[half + j] * sin[i, j]
                out[i, h, half + j] = head[half + j] * cos[i, half + j] + head[j] * sin[i, half + j]


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
