"""Numba kernel: few rows of x times an int8 or int4 matrix that stays as it is, in integers.

The weights are exact; x is rounded to 16 bits with a scale of its own for each group of weights, an error of at most
2^-16 of the largest value in that group (llama.cpp's Q8_0 rounds x to 8 bits). Integers pay twice: sixteen products an
instruction, and no conversion of the weights. At batch 1 over SmolLM2's matrices int8 with float32 activations took
1.2 times as long (two AVX2 cores). What comes before and after the product is `cpu_linear`'s.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu_linear import dot_1, finish, keep_sums, prepared, widened
from reference_impl.kernels.threads import F32, pointer, take
from reference_impl.kernels.vectors import group_dots

MOST = 32767  # of an activation's code
int8_dots_1, int8_dots_4 = group_dots(8, 1), group_dots(8, 4)
int4_dots_1, int4_dots_4 = group_dots(4, 1), group_dots(4, 4)


@njit
def rounded(rows, group_size, width, stored, codes, scales, sums):  # type: ignore[no-untyped-def]
    """Rows [n, n_in] as codes int16 [n, stored], scales and sums (of code * scale) float32 [n, groups].

    A group whose largest value is below 1e-30 counts as 0, one that is not finite becomes NaN.
    """
    n_in = rows.shape[1]
    most = min(np.float32(MOST), np.float32(2**31 / (256 * (width // 16))))  # 32-bit sums must not overflow
    codes[:] = 0
    for i in range(len(rows)):
        for g in range(scales.shape[1]):
            x = rows[i, g * group_size : min((g + 1) * group_size, n_in)]
            top = np.float32(0)
            for j in range(x.size):
                top = max(top, abs(x[j]))
            finite = True
            for j in range(x.size):
                finite &= abs(x[j]) <= np.float32(3.4e38)
            scales[i, g], sums[i, g] = 0, 0
            if not finite:
                scales[i, g] = sums[i, g] = np.nan
            elif top > np.float32(1e-30):
                inverse = most / top
                for j in range(x.size):
                    codes[i, g * width + j] = np.int16(np.rint(x[j] * inverse))
                scales[i, g] = top / most
                total = np.int64(0)
                for j in range(x.size):
                    total += codes[i, g * width + j]
                sums[i, g] = np.float32(total) * scales[i, g]


@njit
def multiply(dots_1, dots_4, w, w_scales, row_bytes, x, x_scales, low, high, out, width):  # type: ignore[no-untyped-def]
    """x, x_scales times the weight rows low to high at the addresses w and w_scales -> out [n, high - low]."""
    n, stored = x.shape
    groups = x_scales.shape[1]
    row = out.strides[0] // 4
    for r in range(low, high):
        codes, scales, to = w + r * row_bytes, w_scales + r * groups * 4, out.ctypes.data + (r - low) * 4
        i = 0
        while i < n:
            at, s, o = x.ctypes.data + i * stored * 2, x_scales.ctypes.data + i * groups * 4, to + i * row * 4
            if n - i < 4:
                dots_1(codes, scales, at, s, o, stored, width, stored, groups, row)
                i += 1
            else:
                dots_4(codes, scales, at, s, o, stored, width, stored, groups, row)
                i += 4


@njit
def subtract_shifts(out, shifts, sums):  # type: ignore[no-untyped-def]
    """What zero points take away: out[i, r] -= shifts[r] · sums[i]."""
    for i in range(len(out)):
        for r in range(out.shape[1]):
            out[i, r] -= dot_1(shifts[r], sums[i])


@njit
def linear(p, dots_1, dots_4, row_bytes):  # type: ignore[no-untyped-def]
    """As `cpu_linear.linear`. p[16:]: scales, shifts, group_size, width, stored, groups."""
    a = carray(p, 23)
    n, n_out, bias, gated, amount = a[4], a[6], a[12], a[13], a[14]
    group_size, width, stored, groups = a[18], a[19], a[20], a[21]
    x, x_scales = np.empty((n, stored), np.int16), np.empty((n, groups), np.float32)
    x_sums = np.empty((n, groups), np.float32)
    rounded(prepared(p), group_size, width, stored, x, x_scales, x_sums)
    n_all = n_out * (1 + gated)
    shifts = carray(pointer(a[17], F32), (n_all if a[17] else 0, groups))
    out = carray(pointer(a[3], F32), (n, n_out))
    biases = widened(bias, n_out if bias else 0, a[15])
    up = np.empty((n if gated else 0, amount), np.float32)
    while True:
        low = take(p, amount)
        if low >= n_out:
            return
        if low == 0:
            keep_sums(p)
        high = min(low + amount, n_out)
        part = out[:, low:high]
        multiply(dots_1, dots_4, a[2], a[16], row_bytes, x, x_scales, low, high, part, width)
        if len(shifts):
            subtract_shifts(part, shifts[low:high], x_sums)
        if gated:
            ups = up[:, : high - low]
            multiply(dots_1, dots_4, a[2], a[16], row_bytes, x, x_scales, n_out + low, n_out + high, ups, width)
            if len(shifts):
                subtract_shifts(ups, shifts[n_out + low : n_out + high], x_sums)
        if gated or bias:
            finish(part, up, biases, low, gated)


def quantized_int8(p):  # type: ignore[no-untyped-def]
    linear(p, int8_dots_1, int8_dots_4, carray(p, 23)[20])


def quantized_int4(p):  # type: ignore[no-untyped-def]
    linear(p, int4_dots_1, int4_dots_4, carray(p, 23)[20] // 2)
