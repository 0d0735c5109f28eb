"""How a Numba kernel reaches raw memory and runs on every core: on the OpenMP threads that torch already has.

A second thread pool (Numba's `prange` brings one) would fight torch's over the cores, each spinning while it waits for
work. So a kernel is compiled to a plain C function of one pointer, and torch's own OpenMP library calls it on all its
threads; the threads share out the work through a counter in memory. Each calling thread gets a team of its own, so
calls from several Python threads are safe. Where that library cannot be found, the kernel runs on one thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic

F32, BF16 = types.float32, types.uint16  # bfloat16 is read as what it is: the upper half of a float32
FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums may be reordered; inf and nan keep their meaning
SIGNATURE = types.void(types.CPointer(types.int64))


@intrinsic
def pointer(typing_context: Any, address: Any, dtype: Any) -> Any:
    """The integer `address` as a pointer to `dtype`."""
    signature = types.CPointer(dtype.dtype)(types.int64, dtype)
    return signature, lambda ctx, build, sig, args: build.inttoptr(args[0], ctx.get_value_type(sig.return_type))


@intrinsic
def take(typing_context: Any, counter: Any, amount: Any) -> Any:
    """Adds to the counter that all threads share, in one step, and returns what it was before."""
    signature = types.int64(types.CPointer(types.int64), types.int64)
    return signature, lambda ctx, build, sig, args: build.atomic_rmw("add", args[0], args[1], "monotonic")


@intrinsic
def widen(typing_context: Any, value: Any) -> Any:
    """A float32, or a bfloat16 given as its 16 bits, as float32."""

    def shift(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        return build.bitcast(build.shl(build.zext(args[0], i32), i32(16)), ir.FloatType())

    if value == F32:
        return F32(F32), lambda ctx, build, sig, args: args[0]
    return F32(BF16), shift


Kernel = tuple[Any, int]  # the compiled function, kept alive, and its address


def compiled(body: Callable[[Any], None]) -> Kernel:
    """Compiles `body(p)`, p pointing to int64 arguments whose first is the shared counter; cached on disk."""
    try:
        function = cfunc(SIGNATURE, cache=True)(body)
    except RuntimeError:  # no folder that Numba may write to
        function = cfunc(SIGNATURE)(body)
    return function, int(function.address or 0)


def run(kernel: Kernel, *arguments: int) -> Any:
    """Runs the kernel on torch's threads; returns its arguments, counter first, which it may have changed."""
    packed = (ctypes.c_int64 * (1 + len(arguments)))(0, *arguments)
    n_threads = torch.get_num_threads()
    parallel = _openmp()
    if parallel is None or n_threads == 1:
        run_alone(kernel, packed)
    else:
        parallel(kernel[1], packed, n_threads, 0)
    return packed


def run_alone(kernel: Kernel, packed: Any) -> None:
    """Runs the kernel on the calling thread only."""
    _PLAIN(kernel[1])(packed)


_PLAIN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@cache
def _openmp() -> Any:
    """GOMP_parallel(function, argument, threads, flags) of the OpenMP library that torch is linked to, or None."""
    library = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            parallel = ctypes.CDLL(str(library / name)).GOMP_parallel  # looked up in its dependencies too
        except (OSError, AttributeError):
            continue
        parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        parallel.restype = None
        return parallel
    return None
