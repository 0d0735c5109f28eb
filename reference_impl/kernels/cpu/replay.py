"""Many launches by one team of threads, which meet between two launches at a barrier of our own.

OpenMP's own barriers would do, but for one thing: where a process has more threads than cores, a server or a notebook
with a second model for example, its threads go to sleep at once instead of waiting a moment. Waking one up takes some
40 microseconds, and a decode step has a hundred and fifty launches. Ours look again and again, and let others run after
a while. What the waiting threads do not look at is work that is left over: a launch's own counter shares that out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from reference_impl.kernels.cpu.scalars import pointer
from reference_impl.kernels.cpu.threads import Kernel, call, call_on_threads, compiled, find

LOOKS = 20_000  # until others may run

Numbers = NDArray[np.int64]


@intrinsic
def arrive(typing_context: Any, counter: Any) -> Any:
    """Adds one to the counter that all threads share; what this thread has written is seen by who sees that."""
    signature = types.int64(types.CPointer(types.int64))
    return signature, lambda ctx, build, sig, args: build.atomic_rmw("add", args[0], ir.IntType(64)(1), "acq_rel")


@intrinsic
def look(typing_context: Any, counter: Any) -> Any:
    """The counter now."""
    signature = types.int64(types.CPointer(types.int64))
    return signature, lambda ctx, build, sig, args: build.load_atomic(args[0], "acquire", 8)


@intrinsic
def ask(typing_context: Any, function: Any) -> Any:
    """function(), given as an address, which takes nothing and returns a C int."""

    def generate(ctx: Any, build: Any, sig: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        target = build.inttoptr(args[0], ir.FunctionType(i32, []).as_pointer())
        return build.sext(build.call(target, []), ir.IntType(64))

    return types.int64(types.int64), generate


def _team(p):  # type: ignore[no-untyped-def]
    """One thread's part. p: counter of arrivals, functions, ends, arguments, n, omp_get_num_threads, sched_yield."""
    a = carray(p, 8)
    n = a[4]
    functions, ends = carray(pointer(a[1], types.int64), n), carray(pointer(a[2], types.int64), n)
    n_threads = ask(a[5])
    first = np.int64(0)
    for i in range(n):
        call(functions[i], a[3] + 8 * first)
        first = ends[i]
        arrive(p)
        looks = 0
        while look(p) < (i + 1) * n_threads:
            looks += 1
            if looks % LOOKS == 0:
                ask(a[6])


@njit(nogil=True, cache=True)
def _run(parallel, n_threads, team, threads, give_way, functions, ends, packed):  # type: ignore[no-untyped-def]
    first = 0
    for i in range(len(functions)):  # counters and statuses
        packed[first] = packed[ends[i] - 1] = 0
        first = ends[i]
    if parallel == 0 or threads == 0 or n_threads == 1:
        first = 0
        for i in range(len(functions)):
            call(functions[i], packed.ctypes.data + 8 * first)
            first = ends[i]
    else:
        a = np.zeros(8, np.int64)
        a[1], a[2], a[3] = functions.ctypes.data, ends.ctypes.data, packed.ctypes.data
        a[4], a[5], a[6] = len(functions), threads, give_way
        call_on_threads(parallel, team, a.ctypes.data, n_threads)
    for i in range(len(functions)):
        if packed[ends[i] - 1] != 0:
            return i
    return -1


def run(parallel: int, n_threads: int, functions: Numbers, ends: Numbers, packed: Numbers) -> int:
    """Launches `functions` one after the other; the number of the first that left a status, or -1.

    packed: the arguments of all, as `Kernel.run` packs them, each up to its end. A launch whose arguments make it leave
    a status does not stop the later ones.
    """
    team, threads, give_way = _compiled()
    return int(_run(parallel, n_threads, team.address, threads, give_way, functions, ends, packed))


@cache
def _compiled() -> tuple[Kernel, int, int]:
    return compiled(_team), find("omp_get_num_threads"), find("sched_yield")
