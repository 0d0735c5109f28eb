"""Numba kernel: a few rows of x times an int8 or int4 matrix, multiplied in integers without widening the matrix.

The weights' codes are used exactly. Each row of x is rounded to 16 bits, an error of at most 2^-16 of its largest value
in groups of up to 1,024 (llama.cpp rounds to 8 bits, in groups of 32). Integers save twice: one instruction makes
sixteen products, and weights need no conversion. Float32 activations took 1.2 times as long (int8, batch 1, SmolLM2's
matrices, two AVX2 cores). The steps before and after the product are those of `linear`.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu.dots import dot_1
from reference_impl.kernels.cpu.linear import finish, keep_sums, prepared, widened
from reference_impl.kernels.cpu.records import QUANTIZED
from reference_impl.kernels.cpu.scalars import F32, fields, float_of, pointer, take
from reference_impl.kernels.cpu.vectors import group_dots

MOST = 32767  # the largest code of an activation
USUAL = (32, 64, 128)  # group widths with a kernel of their own, which has no loop inside a group
int8_dots_1, int8_dots_4 = group_dots(8, 1), group_dots(8, 4)
int8_32_1, int8_32_4 = group_dots(8, 1, 32), group_dots(8, 4, 32)
int8_64_1, int8_64_4 = group_dots(8, 1, 64), group_dots(8, 4, 64)
int8_128_1, int8_128_4 = group_dots(8, 1, 128), group_dots(8, 4, 128)
int4_dots_1, int4_dots_4 = group_dots(4, 1), group_dots(4, 4)
int4_32_1, int4_32_4 = group_dots(4, 1, 32), group_dots(4, 4, 32)
int4_64_1, int4_64_4 = group_dots(4, 1, 64), group_dots(4, 4, 64)
int4_128_1, int4_128_4 = group_dots(4, 1, 128), group_dots(4, 4, 128)


@njit
def largest(x):  # type: ignore[no-untyped-def]
    """The largest magnitude of x; inf or NaN if a value is not finite.

    It compares the bits of the magnitudes as integers: unlike `max` of floats, such a loop is vectorised.
    """
    bits = x.view(np.int32)
    top = np.int32(0)
    for j in range(bits.size):
        size = bits[j] & np.int32(0x7FFFFFFF)
        top = size if size > top else top
    return float_of(top)


@njit(fastmath=False)  # or it would inherit its caller's flag: adding and subtracting 12582912 must round
def round_to(x, inverse, codes):  # type: ignore[no-untyped-def]
    """Writes x * inverse to codes, rounded to the nearest integer, ties to even."""
    for j in range(x.size):
        codes[j] = np.int16((x[j] * inverse + np.float32(12582912)) - np.float32(12582912))


@njit
def rounded(rows, width, group_size, codes, scales, sums):  # type: ignore[no-untyped-def]
    """Rounds rows [n, n_in] to codes int16 [n, stored] with scales [n]; sums [n or 0, groups] get each group's sum.

    A row whose largest value is below 1e-30 becomes 0, a row with a value that is not finite becomes NaN.
    """
    n_in = rows.shape[1]
    most = min(np.float32(MOST), np.float32(2**31 / (64 * width)))  # half a group's products fit 32 bits
    whole = width == group_size and codes.shape[1] == n_in  # no padding: a row is rounded in one go
    if not whole:
        codes[:] = 0
    for i in range(len(rows)):
        top = largest(rows[i])
        scales[i] = (top / most if top > np.float32(1e-30) else 0) if top < np.inf else np.nan
        inverse = np.float32(1) / scales[i] if scales[i] > 0 else np.float32(0)
        if not scales[i] > 0:
            codes[i] = 0
        elif whole:
            round_to(rows[i], inverse, codes[i])
        else:
            for g in range(-(-n_in // group_size)):
                x = rows[i, g * group_size : min((g + 1) * group_size, n_in)]
                round_to(x, inverse, codes[i, g * width : g * width + x.size])
        for g in range(sums.shape[1] if len(sums) else 0):
            total = np.int64(0)
            for code in codes[i, g * width : (g + 1) * width]:  # a group's padding is 0
                total += code
            sums[i, g] = total


@njit
def multiply(dots_1, dots_4, w, w_scales, row_bytes, groups, x, low, high, out, width):  # type: ignore[no-untyped-def]
    """x times the weight rows low to high -> out [n, high - low], before x's scales. w and w_scales are addresses."""
    n, stored = x.shape
    row = out.strides[0] // 4
    for r in range(low, high):
        codes, of_row, to = w + r * row_bytes, w_scales + r * groups * 4, out.ctypes.data + (r - low) * 4
        i = 0
        while i < n:
            at, o = x.ctypes.data + i * stored * 2, to + i * row * 4
            if n - i < 4:
                dots_1(codes, of_row, at, o, stored, width, groups, stored, row)
                i += 1
            else:
                dots_4(codes, of_row, at, o, stored, width, groups, stored, row)
                i += 4


@njit
def scale(out, factor):  # type: ignore[no-untyped-def]
    for r in range(out.size):
        out[r] *= factor


@njit
def settle(out, low, high, shifts, first, sums, scales):  # type: ignore[no-untyped-def]
    """Computes out[i, low:high] = (out - shifts[first:] · sums[i]) * scales[i]; without zero points shifts is empty."""
    for i in range(len(out)):
        if len(shifts):
            for r in range(high - low):
                out[i, low + r] -= dot_1(shifts[first + r], sums[i])
        scale(out[i, low:high], scales[i])


@njit
def linear(p, dots_1, dots_4, codes_a_byte):  # type: ignore[no-untyped-def]
    """As `linear.linear`, for a matrix of int8 or int4 codes."""
    call = fields(p, QUANTIZED)
    n, n_out, gated, share = call.n, call.n_out, call.gated, call.share
    group_size, width, stored, groups = call.group_size, call.width, call.stored, call.groups
    codes, code_scales, row_bytes = call.weight, call.scales, stored // codes_a_byte
    x, scales = np.empty((n, stored), np.int16), np.empty(n, np.float32)
    sums = np.empty((n if call.shifts else 0, groups), np.float32)
    rounded(prepared(call), width, group_size, x, scales, sums)
    shifts = carray(pointer(call.shifts, F32), (n_out * (1 + gated) if call.shifts else 0, groups))
    out = carray(pointer(call.out, F32), (n, n_out))
    biases = widened(call.bias, n_out if call.bias else 0, call.bias_is_bf16)
    up = np.empty((n if gated else 0, share), np.float32)
    while True:
        low = take(p, share)
        if low >= n_out:
            return
        if low == 0:
            keep_sums(call)
        high = min(low + share, n_out)
        part = out[:, low:high]
        multiply(dots_1, dots_4, codes, code_scales, row_bytes, groups, x, low, high, part, width)
        settle(out, low, high, shifts, low, sums, scales)
        if gated:
            ups = up[:, : high - low]
            multiply(dots_1, dots_4, codes, code_scales, row_bytes, groups, x, n_out + low, n_out + high, ups, width)
            settle(up, 0, high - low, shifts, n_out + low, sums, scales)
        finish(out, up, biases, low, high)


def quantized_int8(p):  # type: ignore[no-untyped-def]
    linear(p, int8_dots_1, int8_dots_4, 1)


def quantized_int8_32(p):  # type: ignore[no-untyped-def]
    linear(p, int8_32_1, int8_32_4, 1)


def quantized_int8_64(p):  # type: ignore[no-untyped-def]
    linear(p, int8_64_1, int8_64_4, 1)


def quantized_int8_128(p):  # type: ignore[no-untyped-def]
    linear(p, int8_128_1, int8_128_4, 1)


def quantized_int4(p):  # type: ignore[no-untyped-def]
    linear(p, int4_dots_1, int4_dots_4, 2)


def quantized_int4_32(p):  # type: ignore[no-untyped-def]
    linear(p, int4_32_1, int4_32_4, 2)


def quantized_int4_64(p):  # type: ignore[no-untyped-def]
    linear(p, int4_64_1, int4_64_4, 2)


def quantized_int4_128(p):  # type: ignore[no-untyped-def]
    linear(p, int4_128_1, int4_128_4, 2)
