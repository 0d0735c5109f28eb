"""Operations on single values in a kernel: pointers, the shared counter, float32 and bfloat16, and exp."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

F32, BF16 = types.float32, types.uint16  # a bfloat16 is given as its bits, the upper half of a float32
BF16_PAIR = types.uint32  # two bfloat16 in one word; the first in memory is the lower half
FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums may be reordered; inf and nan keep their meaning
DIVISION: Literal["numpy"] = "numpy"  # by 0 gives inf or NaN. Python's check would keep loops from vectorising


@intrinsic
def pointer(typing_context: Any, address: Any, dtype: Any) -> Any:
    """The integer `address` as a pointer to `dtype`."""
    signature = types.CPointer(dtype.dtype)(types.int64, dtype)
    return signature, lambda ctx, build, sig, args: build.inttoptr(args[0], ctx.get_value_type(sig.return_type))


@intrinsic
def fields(typing_context: Any, address: Any, record: Any) -> Any:
    """The call record (`records`) at a pointer, whose fields can be read and written by name."""
    signature = record.dtype(address, record)
    return signature, lambda ctx, build, sig, args: build.bitcast(args[0], ctx.get_value_type(sig.return_type))


@intrinsic
def take(typing_context: Any, counter: Any, amount: Any) -> Any:
    """Adds `amount` to the counter that all threads share, atomically, and returns its value before."""
    signature = types.int64(types.CPointer(types.int64), types.int64)
    return signature, lambda ctx, build, sig, args: build.atomic_rmw("add", args[0], args[1], "monotonic")


@intrinsic
def widen(typing_context: Any, value: Any) -> Any:
    """A float32 as it is, or a bfloat16, given as its 16 bits, as float32."""

    def shift(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        return build.bitcast(build.shl(build.zext(args[0], i32), i32(16)), ir.FloatType())

    if value == F32:
        return F32(F32), lambda ctx, build, sig, args: args[0]
    return F32(BF16), shift


@intrinsic
def float_of(typing_context: Any, bits: Any) -> Any:
    """The float32 that has these 32 bits."""
    return F32(types.int32), lambda ctx, build, sig, args: build.bitcast(args[0], ir.FloatType())


@intrinsic
def even(typing_context: Any, pair: Any) -> Any:
    """The first bfloat16 of a pair, as float32."""

    def shift(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        return build.bitcast(build.shl(args[0], ir.IntType(32)(16)), ir.FloatType())

    return F32(BF16_PAIR), shift


@intrinsic
def odd(typing_context: Any, pair: Any) -> Any:
    """The second bfloat16 of a pair, as float32."""

    def mask(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        return build.bitcast(build.and_(args[0], ir.IntType(32)(0xFFFF0000)), ir.FloatType())

    return F32(BF16_PAIR), mask


@intrinsic
def narrow(typing_context: Any, value: Any, like: Any) -> Any:
    """A float32 as the type of `like`: unchanged, or rounded to bfloat16 (half to even) and given as its 16 bits."""

    def round_half_even(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        bits = build.bitcast(args[0], i32)
        odd = build.and_(build.lshr(bits, i32(16)), i32(1))
        rounded = build.lshr(build.add(bits, build.add(odd, i32(0x7FFF))), i32(16))
        nan = build.fcmp_unordered("uno", args[0], args[0])
        return build.trunc(build.select(nan, i32(0x7FC0), rounded), ir.IntType(16))

    if like == F32:
        return F32(F32, F32), lambda ctx, build, sig, args: args[0]
    return BF16(F32, BF16), round_half_even


@intrinsic
def two_to_the(typing_context: Any, shifted: Any) -> Any:
    """2 to the n, for `shifted` = n + 1.5 * 2^23, which holds the integer n in its low bits."""

    def generate(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        exponent = build.shl(build.bitcast(args[0], i32), i32(23))
        return build.bitcast(build.add(exponent, i32(127 << 23)), ir.FloatType())

    return F32(F32), generate


@njit(fastmath=False)  # or it would inherit its caller's flag: adding and subtracting 12582912 must round
def exp(x):  # type: ignore[no-untyped-def]
    """e to the x in float32, to 3e-7. Unlike the C library's it is plain arithmetic and vectorises. NaN stays NaN."""
    x = np.float32(-87) if x < np.float32(-87) else x
    x = np.float32(88) if x > np.float32(88) else x
    shifted = x * np.float32(1.44269504) + np.float32(12582912)
    n = shifted - np.float32(12582912)
    r = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)  # ln 2 in two parts
    p = np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(0.5)
    return (p * r * r + r + np.float32(1)) * two_to_the(shifted)
