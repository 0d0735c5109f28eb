"""How a Numba kernel runs on every core: on the OpenMP threads that torch already has.

A second thread pool, such as that of Numba's `prange`, would fight torch's for the cores, since the threads of both
spin while they wait for work. So a kernel is compiled to a plain C function of one pointer, and torch's own OpenMP
library calls it on all its threads, which share out the work through a counter in memory. Each calling thread gets a
team of its own, so several Python threads may call kernels at once. If that library is not found, kernels run on one
thread.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from llvmlite import ir
from numba import cfunc, config, njit, types
from numba.extending import intrinsic

from reference_impl.kernels.cpu.scalars import DIVISION

SIGNATURE = types.void(types.CPointer(types.int64))


@intrinsic
def call(typing_context: Any, function: Any, arguments: Any) -> Any:
    """Calls function(arguments); both are addresses."""

    def generate(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        target = build.inttoptr(args[0], ir.FunctionType(ir.VoidType(), [byte]).as_pointer())
        build.call(target, [build.inttoptr(args[1], byte)])
        return ctx.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def call_on_threads(typing_context: Any, parallel: Any, function: Any, arguments: Any, n_threads: Any) -> Any:
    """Calls GOMP_parallel(function, arguments, n_threads, 0), which calls function(arguments) on every thread."""

    def generate(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [byte, byte, i32, i32])
        target = build.inttoptr(args[0], signature.as_pointer())
        function, arguments = (build.inttoptr(value, byte) for value in args[1:3])
        build.call(target, [function, arguments, build.trunc(args[3], i32), i32(0)])
        return ctx.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@njit(nogil=True, cache=True)
def launch(parallel, function, n_threads, *arguments):  # type: ignore[no-untyped-def]
    """Writes the call record of a kernel, runs the kernel, and returns its status. parallel: GOMP_parallel, or 0."""
    packed = np.zeros(2 + len(arguments), np.int64)
    for i in range(len(arguments)):
        packed[1 + i] = arguments[i]
    if parallel == 0 or n_threads == 1:
        call(function, packed.ctypes.data)
    else:
        call_on_threads(parallel, function, packed.ctypes.data, n_threads)
    return packed[-1]


class Recorder(Protocol):
    """Takes note of a thread's launches, while it is that thread's `LISTENING.recorder`."""

    def add(self, kernel: Kernel, arguments: tuple[Argument, ...], numbers: tuple[int, ...]) -> None: ...


class _Listening(threading.local):
    recorder: Recorder | None = None


LISTENING = _Listening()
Argument = int | torch.Tensor | None  # None: no address is given


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel: the function, which must stay alive, and its address."""

    function: Any
    address: int


def compiled(body: Callable[[Any], None]) -> Kernel:
    """Compiles `body(p)`, where p points to a call record. The code is cached on disk."""
    numba: Any = config
    default = numba.CACHE_DIR
    numba.CACHE_DIR = str(Path(default or Path(__file__).parent / "__pycache__") / _version())
    try:
        function = cfunc(SIGNATURE, cache=True, error_model=DIVISION)(body)
    except (RuntimeError, OSError):  # no folder that Numba may write to
        function = cfunc(SIGNATURE, error_model=DIVISION)(body)
    finally:
        numba.CACHE_DIR = default
    return Kernel(function, int(function.address or 0))


@cache
def _version() -> str:
    """Names the state of all kernel sources, since Numba does not notice a change in another file."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return "kernels-" + hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def find(name: str) -> int:
    """The address of a function in torch's OpenMP library, or in another that torch depends on; 0 if none has it."""
    for file in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / file))
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p)  # looked up in its dependencies too
        except (OSError, AttributeError):
            continue
        return found.value or 0
    return 0


PARALLEL = find("GOMP_parallel")  # (function, argument, threads, flags)
