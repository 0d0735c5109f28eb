"""Records launches once and runs them again with one call, on threads that meet at a barrier after each launch.

OpenMP's own barrier would do, but for one case: if a process has more threads than cores (a server, or a notebook with
a second model), OpenMP's threads sleep as soon as they wait. Waking one takes some 40 microseconds, and a decode step
has a hundred and fifty launches. So the threads here poll a counter, and let other threads run after a while. A late
thread delays nobody's work: the tasks of a launch go to the threads that ask for them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from reference_impl.kernels.cpu.launch import (
    LISTENING,
    PARALLEL,
    Argument,
    Kernel,
    call,
    call_on_threads,
    compiled,
    find,
)
from reference_impl.kernels.cpu.records import REPLAY
from reference_impl.kernels.cpu.scalars import fields, pointer

LOOKS = 20_000  # polls of the counter until other threads may run


@intrinsic
def arrive(typing_context: Any, counter: Any) -> Any:
    """Adds one to the barrier's counter. A thread that sees the new value also sees all that was written before it."""
    signature = types.int64(types.CPointer(types.int64))
    return signature, lambda ctx, build, sig, args: build.atomic_rmw("add", args[0], ir.IntType(64)(1), "acq_rel")


@intrinsic
def look(typing_context: Any, counter: Any) -> Any:
    """The barrier's counter now."""
    signature = types.int64(types.CPointer(types.int64))
    return signature, lambda ctx, build, sig, args: build.load_atomic(args[0], "acquire", 8)


@intrinsic
def ask(typing_context: Any, function: Any) -> Any:
    """Calls the function at an address, which takes no argument and returns a C int."""

    def generate(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        target = build.inttoptr(args[0], ir.FunctionType(i32, []).as_pointer())
        return build.sext(build.call(target, []), ir.IntType(64))

    return types.int64(types.int64), generate


def _run_all(p):  # type: ignore[no-untyped-def]
    """Runs one thread's part of all launches. The record's counter counts arrivals at the barriers."""
    all_launches = fields(p, REPLAY)
    n, records, give_way = all_launches.n, all_launches.records, all_launches.sched_yield
    functions = carray(pointer(all_launches.functions, types.int64), n)
    ends = carray(pointer(all_launches.ends, types.int64), n)
    n_threads = ask(all_launches.omp_get_num_threads)
    first = np.int64(0)
    for i in range(n):
        call(functions[i], records + 8 * first)
        first = ends[i]
        arrive(p)
        looks = 0
        while look(p) < (i + 1) * n_threads:
            looks += 1
            if looks % LOOKS == 0:
                ask(give_way)


@njit(nogil=True, cache=True)
def _run(parallel, n_threads, run_all, threads, give_way, functions, ends, records):  # type: ignore[no-untyped-def]
    first = 0
    for i in range(len(functions)):  # reset each counter and status
        records[first] = records[ends[i] - 1] = 0
        first = ends[i]
    if parallel == 0 or threads == 0 or n_threads == 1:
        first = 0
        for i in range(len(functions)):
            call(functions[i], records.ctypes.data + 8 * first)
            first = ends[i]
    else:
        all_launches = np.zeros(1, REPLAY)
        all_launches[0].functions, all_launches[0].ends = functions.ctypes.data, ends.ctypes.data
        all_launches[0].records, all_launches[0].n = records.ctypes.data, len(functions)
        all_launches[0].omp_get_num_threads, all_launches[0].sched_yield = threads, give_way
        call_on_threads(parallel, run_all, all_launches.ctypes.data, n_threads)
    for i in range(len(functions)):
        if records[ends[i] - 1] != 0:
            return i
    return -1


class Recording:
    """The launches made inside `with recording:`, which `replay` makes again, with the same memory and sizes.

    It is to a CPU what a CUDA graph is to a GPU: a decode step at batch 1 makes a hundred and fifty launches, and for
    each of them Python takes as long as the kernel. The recording keeps alive the tensors that the kernels were given.
    """

    def __init__(self) -> None:
        self._functions: list[int] = []
        self._records: list[int] = []  # of all launches, one after another; `_ends` says where each one ends
        self._ends: list[int] = []
        self._kept: list[object] = []

    def __enter__(self) -> Recording:
        LISTENING.recorder = self
        return self

    def __exit__(self, *_: object) -> None:
        LISTENING.recorder = None
        self._arrays = tuple(np.array(x, np.int64) for x in (self._functions, self._ends, self._records))

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, kernel: Kernel, arguments: tuple[Argument, ...], numbers: tuple[int, ...]) -> None:
        self._functions.append(kernel.address)
        self._records += (0, *numbers, 0)
        self._ends.append(len(self._records))
        self._kept.append((kernel, arguments))

    def replay(self) -> None:
        """Makes all launches again, in order. If one leaves a status, the later ones still run.

        IndexError if a table or slot leads out of the memory that a kernel was given.
        """
        run_all, threads, give_way = _compiled()
        if _run(PARALLEL, torch.get_num_threads(), run_all.address, threads, give_way, *self._arrays) >= 0:
            raise IndexError("a block table, length or slot of this pass does not fit the cache")


@cache
def _compiled() -> tuple[Kernel, int, int]:
    return compiled(_run_all), find("omp_get_num_threads"), find("sched_yield")
