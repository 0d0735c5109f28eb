"""The probe divides known work by the median of what the clock says."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest
import torch

from reference_impl.benchmarks.probe import copy_bandwidth, matmul_rate, median_seconds, probe, read_bandwidth

CPU = torch.device("cpu")


def clock_of(*durations: float):
    """A clock by which successive runs take these seconds, over and over."""
    marks = itertools.chain.from_iterable((0.0, seconds) for seconds in itertools.cycle(durations))
    return lambda: next(marks)


def test_read_bandwidth_counts_every_byte_once() -> None:
    assert read_bandwidth(CPU, clock_of(0.5), repeats=3, n_bytes=8000) == 16_000


def test_copy_bandwidth_counts_the_bytes_read_and_the_bytes_written() -> None:
    assert copy_bandwidth(CPU, clock_of(0.5), repeats=3, n_bytes=8000) == 16_000


def test_matmul_rate_counts_a_multiplication_and_an_addition_for_each_of_n_cubed_terms() -> None:
    assert matmul_rate(CPU, clock_of(2.0), repeats=1, n=10) == 1000


def test_one_slow_run_does_not_move_the_result() -> None:
    assert median_seconds(lambda: None, CPU, clock_of(1.0, 90.0, 1.1), repeats=3) == 1.1


def test_the_warm_up_run_is_not_timed() -> None:
    runs: list[int] = []
    median_seconds(lambda: runs.append(1), CPU, clock_of(1.0), repeats=4)
    assert len(runs) == 5


def test_probe_gives_a_gpu_for_the_bounds() -> None:
    machine = probe("cpu", clock=clock_of(0.25), repeats=3, read_bytes=4000, matrix=8)
    assert (machine.bandwidth, machine.peak_flops) == (16_000, 4096)
    assert machine.ridge == 0.256
    assert machine.memory_bytes > 2**28


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "device 'tpu' cannot be probed; expected 'cpu' or 'cuda'"),
        ({"repeats": 0}, "repeats is too small"),
        ({"read_bytes": 3}, "read_bytes is too small"),
        ({"matrix": 0}, "matrix is too small"),
    ],
)
def test_what_cannot_be_measured_is_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probe(**options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_named() -> None:
    with pytest.raises(ValueError, match="PyTorch finds no GPU here"):
        probe("cuda")


def test_the_command_prints_json() -> None:
    command = [sys.executable, "-m", "reference_impl", "probe", "--repeats", "1", "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["bandwidth"] > 1e8
    assert found["peak_flops"] > 1e8


def test_the_command_refuses_an_unknown_device_with_one_line() -> None:
    command = [sys.executable, "-m", "reference_impl", "probe", "--device", "tpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "'tpu'" in done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_reads_faster_than_any_cpu() -> None:
    assert probe("cuda").bandwidth > 1e11
