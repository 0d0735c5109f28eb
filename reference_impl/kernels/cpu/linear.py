"""Numba kernel: a few rows of x times a float32 or bfloat16 matrix, with the steps before and after in the same call.

At batch 1 a decode step mostly streams the weights, so what counts is that every core reads memory in order (`dots` has
the loops). Before the product the kernel can add the residual and normalise the sum (RMSNorm); after it, it can add a
bias or compute silu(gate) * up. Every thread repeats the addition and the norm: that takes a few hundred nanoseconds,
while another launch would take microseconds, in which memory is idle.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit

from reference_impl.kernels.cpu.dots import multiply_any, split_pairs
from reference_impl.kernels.cpu.records import LINEAR
from reference_impl.kernels.cpu.scalars import BF16, BF16_PAIR, DIVISION, F32, FAST, exp, fields, pointer, take, widen


@njit(fastmath=FAST)
def keep_and_square(x, delta, out):  # type: ignore[no-untyped-def]
    """Writes x + delta (x alone if delta is empty) to out, and returns the sum of its squares."""
    total = np.float32(0)
    if len(delta):
        for j in range(out.size):
            out[j] = x[j] + delta[j]
            total += out[j] * out[j]
    else:
        for j in range(out.size):
            out[j] = x[j]
            total += x[j] * x[j]
    return total


@njit
def normed(x, delta, norm, eps):  # type: ignore[no-untyped-def]
    """rms_norm of x + delta, or of x alone if delta has no rows: [n, n_in]."""
    out = np.empty_like(x)
    for i in range(len(x)):
        to, none = out[i], x[i, :0]
        total = keep_and_square(x[i], delta[i] if len(delta) else none, to)
        scale = np.float32(1 / math.sqrt(total / norm.size + eps))
        for j in range(norm.size):
            to[j] = to[j] * scale * norm[j]
    return out


@njit
def widened(address, n, is_bf16):  # type: ignore[no-untyped-def]
    """A vector [n] of float32 or bfloat16, as float32."""
    whole, half = carray(pointer(address, F32), n), carray(pointer(address, BF16), n)
    out = np.empty(n, np.float32)
    for j in range(n):
        out[j] = widen(half[j]) if is_bf16 else whole[j]
    return out


@njit
def prepared(call):  # type: ignore[no-untyped-def]
    """The rows to multiply, float32 [n, n_in]: x, with delta added and normalised if the call record asks for it."""
    n, n_in = call.n, call.n_in
    x = carray(pointer(call.x, F32), (n, n_in))
    if call.norm == 0:
        return x
    delta = carray(pointer(call.delta, F32), (n if call.delta else 0, n_in))
    return normed(x, delta, widened(call.norm, n_in, call.norm_is_bf16), call.eps)


@njit
def keep_sums(call):  # type: ignore[no-untyped-def]
    """Writes x + delta to where the caller wants it. Only one thread calls this."""
    if call.sums == 0:
        return
    size = call.n * call.n_in
    x, delta = carray(pointer(call.x, F32), size), carray(pointer(call.delta, F32), size)
    sums = carray(pointer(call.sums, F32), size)
    for j in range(size):
        sums[j] = x[j] + delta[j]


@njit(error_model=DIVISION)
def gate(out, up):  # type: ignore[no-untyped-def]
    for r in range(out.size):
        out[r] = out[r] / (np.float32(1) + exp(-out[r])) * up[r]


@njit
def add(out, bias):  # type: ignore[no-untyped-def]
    for r in range(out.size):
        out[r] += bias[r]


@njit
def finish(out, up, bias, low, high):  # type: ignore[no-untyped-def]
    """Computes silu(out) * up in out[:, low:high] for a gated matrix, and adds bias[low:high] if there is one.

    It goes row by row, because only a slice of one row is known to be contiguous, and only such a loop is vectorised.
    """
    for i in range(len(out)):
        if len(up):
            gate(out[i, low:high], up[i])
        if len(bias):
            add(out[i, low:high], bias[low:high])


@njit
def linear(p, rows, weight_type, pairs):  # type: ignore[no-untyped-def]
    """Computes one thread's share of out [n, n_out] = rows @ weight.T, with the bias or the gate.

    pairs: how many weights a value of `weight_type` holds.
    """
    call = fields(p, LINEAR)
    n, n_out, gated, share = call.n, call.n_out, call.gated, call.share
    weight = carray(pointer(call.weight, weight_type), (n_out * (1 + gated), call.n_in // pairs))
    out = carray(pointer(call.out, F32), (n, n_out))
    biases = widened(call.bias, n_out if call.bias else 0, call.bias_is_bf16)
    up = np.empty((n if gated else 0, share), np.float32)
    wide = np.empty((4, rows.shape[1]), np.float32)
    while True:
        low = take(p, share)
        if low >= n_out:
            return
        if low == 0:
            keep_sums(call)
        high = min(low + share, n_out)
        multiply_any(rows, weight[low:high], out[:, low:high], wide)
        if gated:
            multiply_any(rows, weight[n_out + low : n_out + high], up[:, : high - low], wide)
        finish(out, up, biases, low, high)


def linear_f32(p):  # type: ignore[no-untyped-def]
    linear(p, prepared(fields(p, LINEAR)), F32, 1)


def linear_bf16(p):  # type: ignore[no-untyped-def]
    linear(p, prepared(fields(p, LINEAR)), BF16, 1)


def linear_bf16_pair(p):  # type: ignore[no-untyped-def]
    linear(p, split_pairs(prepared(fields(p, LINEAR))), BF16_PAIR, 2)
