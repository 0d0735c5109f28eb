"""What this machine can do at best, measured: bytes read per second and floating-point operations per second.

These are the two ceilings of the roofline (Williams, Waterman and Patterson 2009). They make a `Gpu` like those of the
data sheets, so every bound can be computed for the machine at hand. Bandwidth: the sum of an array that no cache can
hold. Arithmetic: one large square product, in float32 on a CPU and bfloat16 on a GPU. Both are medians of several runs.
The clock is passed in.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence

import torch

from reference_impl.bounds.hardware import Gpu
from reference_impl.common.clock import Clock

GIB = 2**30
Summary = Callable[[Sequence[float]], float]  # of several runs: `statistics.median`, or `min` if others disturb


def probe(
    device: str | torch.device = "cpu",
    clock: Clock = time.perf_counter,
    repeats: int = 9,
    read_bytes: int | None = None,
    matrix: int | None = None,
    summarize: Summary = statistics.median,
) -> Gpu:
    """Measures `device` and returns it as a `Gpu`.

    repeats: runs of each measurement, of which the median counts, or what `summarize` makes of them. read_bytes: size
    of the array that is summed, far beyond the caches (default 256 MiB on a CPU, 4 GiB on a GPU). matrix: rows of the
    square product (1,536 or 8,192). ValueError for a device that is not there or arguments that measure nothing.
    """
    if str(device).split(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"device {str(device)!r} cannot be probed; expected 'cpu' or 'cuda'")
    device = torch.device(device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda': PyTorch finds no GPU here")
    on_gpu = device.type == "cuda"
    read_bytes = (4 * GIB if on_gpu else GIB // 4) if read_bytes is None else read_bytes
    matrix = (8192 if on_gpu else 1536) if matrix is None else matrix
    for name, value in (("repeats", repeats), ("read_bytes", read_bytes // 4), ("matrix", matrix)):
        if value < 1:
            raise ValueError(f"{name} is too small to measure anything")
    return Gpu(
        name=_name(device),
        peak_flops=matmul_rate(device, clock, repeats, matrix, summarize),
        bandwidth=read_bandwidth(device, clock, repeats, read_bytes, summarize),
        memory_bytes=_memory(device),
    )


def read_bandwidth(
    device: torch.device, clock: Clock, repeats: int, n_bytes: int, summarize: Summary = statistics.median
) -> float:
    """Bytes per second at which all cores together read an array of n_bytes once."""
    values = torch.zeros(n_bytes // 4, dtype=torch.float32, device=device)
    values.fill_(1.0)  # the system may not allocate zeroed memory until it is written
    return values.nbytes / median_seconds(lambda: values.sum(), device, clock, repeats, summarize)


def copy_bandwidth(device: torch.device, clock: Clock, repeats: int, n_bytes: int) -> float:
    """Bytes per second, read and written together, of a copy from one half of n_bytes to the other."""
    source = torch.ones(n_bytes // 8, dtype=torch.float32, device=device)
    target = torch.zeros_like(source)
    return 2 * source.nbytes / median_seconds(lambda: target.copy_(source), device, clock, repeats)


def matmul_rate(
    device: torch.device, clock: Clock, repeats: int, n: int, summarize: Summary = statistics.median
) -> float:
    """FLOP per second of an n x n x n product (2 n^3 operations): bfloat16 on a GPU, float32 on a CPU."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    random = torch.Generator(device).manual_seed(0)  # a chip clocks higher on equal numbers
    a, b = (torch.randn(n, n, generator=random, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * n**3 / median_seconds(lambda: torch.mm(a, b, out=out), device, clock, repeats, summarize)


def median_seconds(
    run: Callable[[], object],
    device: torch.device,
    clock: Clock,
    repeats: int,
    summarize: Summary = statistics.median,
) -> float:
    """Median time of a call after one call to warm up. A GPU is timed by events on its own stream, not by `clock`."""
    run()
    seconds = []
    for _ in range(repeats):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            end.synchronize()
            seconds.append(start.elapsed_time(end) / 1e3)
        else:
            started = clock()
            run()
            seconds.append(clock() - started)
    return summarize(seconds)


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    n_threads = torch.get_num_threads()
    return f"this CPU, {n_threads} thread{'s' * (n_threads != 1)}"


def _memory(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
