"""Numba loops for the dot products of weight rows, float32 or bfloat16, with a few rows of x.

Each weight row is loaded once and used for up to eight rows of x. Weight rows are taken one by one, so that memory is
read in order: two or four at a time would share the loads of x, but took 15 to 35 % longer, because the processor's
prefetching loses its place. bfloat16 weights are read as pairs in a 32-bit word, which one shift and one mask turn into
two floats.

Measured over the matrices of SmolLM2-135M on two AVX2 cores (medians, interleaved): float32 is as fast as the same
loops in C with AVX2 intrinsics at 1, 4 and 8 rows of x and faster at 32; torch's `linear` takes twice as long at one
row.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from reference_impl.kernels.cpu.scalars import BF16_PAIR, FAST, even, odd, widen


def term(w, x, j):  # type: ignore[no-untyped-def]
    """Weight w[j] times its value of x. For a pair of weights, the sum of both products."""


@overload(term, jit_options={"fastmath": FAST}, inline="always")
def _term(w, x, j):  # type: ignore[no-untyped-def]
    if w.dtype == BF16_PAIR:
        return lambda w, x, j: even(w[j]) * x[j] + odd(w[j]) * x[w.size + j]
    return lambda w, x, j: widen(w[j]) * x[j]


@njit(fastmath=FAST)
def dot_1(w, x):  # type: ignore[no-untyped-def]
    s = np.float32(0)
    for j in range(w.size):
        s += term(w, x, j)
    return s


@njit(fastmath=FAST)
def dot_4(w, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    s0 = s1 = s2 = s3 = np.float32(0)
    for j in range(w.size):
        s0 += term(w, x0, j)
        s1 += term(w, x1, j)
        s2 += term(w, x2, j)
        s3 += term(w, x3, j)
    return s0, s1, s2, s3


@njit(fastmath=FAST)
def dot_8(w, x0, x1, x2, x3, x4, x5, x6, x7):  # type: ignore[no-untyped-def]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0)
    for j in range(w.size):
        s0 += term(w, x0, j)
        s1 += term(w, x1, j)
        s2 += term(w, x2, j)
        s3 += term(w, x3, j)
        s4 += term(w, x4, j)
        s5 += term(w, x5, j)
        s6 += term(w, x6, j)
        s7 += term(w, x7, j)
    return s0, s1, s2, s3, s4, s5, s6, s7


@njit(fastmath=FAST)
def dot_4x2(w0, w1, w2, w3, x0, x1):  # type: ignore[no-untyped-def]
    s00 = s10 = s20 = s30 = s01 = s11 = s21 = s31 = np.float32(0)
    for j in range(w0.size):
        a, b, c, d, e, f = w0[j], w1[j], w2[j], w3[j], x0[j], x1[j]
        s00 += a * e
        s10 += b * e
        s20 += c * e
        s30 += d * e
        s01 += a * f
        s11 += b * f
        s21 += c * f
        s31 += d * f
    return s00, s10, s20, s30, s01, s11, s21, s31


@njit
def expand(pairs, out):  # type: ignore[no-untyped-def]
    """Widens a row of pairs to float32: the first of every pair, then the second of every pair, as in `split_pairs`."""
    half = pairs.size
    for j in range(half):
        out[j] = even(pairs[j])
        out[half + j] = odd(pairs[j])


@njit
def multiply_wide(x, weight, out, wide):  # type: ignore[no-untyped-def]
    """As `multiply`, for pairs and many rows of x: widens four weight rows at a time into `wide` [4, n_in].

    With many rows arithmetic takes longer than reading, and widened rows that lie in the cache can share the loads of
    x.
    """
    n, n_out = len(x), len(weight)
    for r in range(0, n_out, 4):
        r1, r2, r3 = min(r + 1, n_out - 1), min(r + 2, n_out - 1), min(r + 3, n_out - 1)
        for k in range(4):
            expand(weight[min(r + k, n_out - 1)], wide[k])
        for i in range(0, n, 2):
            b = min(i + 1, n - 1)
            s = dot_4x2(wide[0], wide[1], wide[2], wide[3], x[i], x[b])
            out[i, r], out[i, r1], out[i, r2], out[i, r3] = s[0], s[1], s[2], s[3]
            out[b, r], out[b, r1], out[b, r2], out[b, r3] = s[4], s[5], s[6], s[7]


def multiply_any(x, weight, out, wide):  # type: ignore[no-untyped-def]
    """x [n, n_in] times the rows of weight -> out [n, rows]; `wide` [4, n_in] is scratch memory."""


@overload(multiply_any)
def _multiply_any(x, weight, out, wide):  # type: ignore[no-untyped-def]
    if weight.dtype != BF16_PAIR:
        return lambda x, weight, out, wide: multiply(x, weight, out)

    def pairs(x, weight, out, wide):  # type: ignore[no-untyped-def]
        if len(x) > 4:
            multiply_wide(x, weight, out, wide)
        else:
            multiply(x, weight, out)

    return pairs


@njit
def multiply(x, weight, out):  # type: ignore[no-untyped-def]
    """x [n, n_in] times the rows of weight -> out [n, rows]."""
    n = len(x)
    tile = 8 if x.shape[1] <= 1024 else 4  # as many rows of x as fit into the first-level cache
    i = 0
    while i < n:
        # At the end of x a tile repeats the last row: while memory is the limit, extra arithmetic costs nothing.
        b, c, d = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        if n - i == 1:
            for r in range(len(weight)):
                out[i, r] = dot_1(weight[r], x[i])
            i += 1
        elif tile == 4 or n - i <= 4:
            for r in range(len(weight)):
                out[i, r], out[b, r], out[c, r], out[d, r] = dot_4(weight[r], x[i], x[b], x[c], x[d])
            i += 4
        else:
            e, f, g, h = min(i + 4, n - 1), min(i + 5, n - 1), min(i + 6, n - 1), min(i + 7, n - 1)
            for r in range(len(weight)):
                s = dot_8(weight[r], x[i], x[b], x[c], x[d], x[e], x[f], x[g], x[h])
                out[i, r], out[b, r], out[c, r], out[d, r] = s[0], s[1], s[2], s[3]
                out[e, r], out[f, r], out[g, r], out[h, r] = s[4], s[5], s[6], s[7]
            i += 8


@njit
def split_pairs(x):  # type: ignore[no-untyped-def]
    """Rows [n, n_in], the values at even places first and those at odd places behind, as `term` reads pairs."""
    out = np.empty_like(x)
    half = x.shape[1] // 2
    for i in range(len(x)):
        for j in range(half):
            out[i, j] = x[i, 2 * j]
            out[i, half + j] = x[i, 2 * j + 1]
    return out
