"""Numba kernel: few rows of x times a weight matrix, float32 or bfloat16, sums in float32.

At batch 1 a decode step only streams the weights, so what matters is to read memory in order with every core: one
weight row after the other, each loaded once and used for up to eight rows of x. Measured over the matrices of
SmolLM2-135M on two AVX2 cores that read 27 GB/s (medians, interleaved), milliseconds a step at 1 / 4 / 8 / 32 rows:

- this kernel: float32 19 / 23 / 30 / 90, bfloat16 12 / 14 / 21 / 82;
- the same in C with AVX2 intrinsics: float32 19 / 23 / 31 / 127, bfloat16 12 / 14 / 22 / 122;
- torch in float32: `linear` 40 / 79 / 72 / 124, `mm(weight, x.T)` 40 / 28 / 45 / 102.

Numba is level with C and needs no compiler, so it is Numba. Two or four weight rows at a time would share the loads of
x, yet cost 15 to 35 % more: the prefetcher loses its place.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from reference_impl.kernels.threads import BF16, F32, FAST, pointer, take, widen

WEIGHT_ROWS = 32  # weight rows that a thread takes at a time


@njit(fastmath=FAST)
def dot_1(w, x):  # type: ignore[no-untyped-def]
    s = np.float32(0)
    for j in range(w.size):
        s += widen(w[j]) * x[j]
    return s


@njit(fastmath=FAST)
def dot_4(w, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    s0 = s1 = s2 = s3 = np.float32(0)
    for j in range(w.size):
        wj = widen(w[j])
        s0 += wj * x0[j]
        s1 += wj * x1[j]
        s2 += wj * x2[j]
        s3 += wj * x3[j]
    return s0, s1, s2, s3


@njit(fastmath=FAST)
def dot_8(w, x0, x1, x2, x3, x4, x5, x6, x7):  # type: ignore[no-untyped-def]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0)
    for j in range(w.size):
        wj = widen(w[j])
        s0 += wj * x0[j]
        s1 += wj * x1[j]
        s2 += wj * x2[j]
        s3 += wj * x3[j]
        s4 += wj * x4[j]
        s5 += wj * x5[j]
        s6 += wj * x6[j]
        s7 += wj * x7[j]
    return s0, s1, s2, s3, s4, s5, s6, s7


@njit
def linear(p, weight_type):  # type: ignore[no-untyped-def]
    """One thread's share of out = x @ weight.T. p: counter, x, weight, out, n, n_in, n_out."""
    a = carray(p, 7)
    n, n_in, n_out = a[4], a[5], a[6]
    x = carray(pointer(a[1], F32), (n, n_in))
    weight = carray(pointer(a[2], weight_type), (n_out, n_in))
    out = carray(pointer(a[3], F32), (n, n_out))
    tile = 8 if n_in <= 1024 else 4  # as many rows of x as fit into the first-level cache
    while True:
        low = take(p, np.int64(WEIGHT_ROWS))
        if low >= n_out:
            return
        high = min(low + WEIGHT_ROWS, n_out)
        i = 0
        while i < n:
            # A tile that finds too few rows left repeats the last one: arithmetic is free here, reading is not.
            b, c, d = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
            if n - i == 1:
                for r in range(low, high):
                    out[i, r] = dot_1(weight[r], x[i])
                i += 1
            elif tile == 4 or n - i <= 4:
                for r in range(low, high):
                    out[i, r], out[b, r], out[c, r], out[d, r] = dot_4(weight[r], x[i], x[b], x[c], x[d])
                i += 4
            else:
                e, f, g, h = min(i + 4, n - 1), min(i + 5, n - 1), min(i + 6, n - 1), min(i + 7, n - 1)
                for r in range(low, high):
                    s = dot_8(weight[r], x[i], x[b], x[c], x[d], x[e], x[f], x[g], x[h])
                    out[i, r], out[b, r], out[c, r], out[d, r] = s[0], s[1], s[2], s[3]
                    out[e, r], out[f, r], out[g, r], out[h, r] = s[4], s[5], s[6], s[7]
                i += 8


def linear_f32(p):  # type: ignore[no-untyped-def]
    linear(p, F32)


def linear_bf16(p):  # type: ignore[no-untyped-def]
    linear(p, BF16)
