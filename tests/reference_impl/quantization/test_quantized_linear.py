"""Products with int8 and int4 matrices equal those with the float matrix they stand for, as far as is promised."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from reference_impl import kernels
from reference_impl.model.llama import Linear
from reference_impl.quantization.linear import QuantizedLinear
from reference_impl.quantization.rounding import quantize
from reference_impl.quantization.weight import QuantizedWeight

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
SHAPES = [  # rows, columns, group size
    (96, 576, 128),  # a last group of half the size
    (7, 13, 5),
    (33, 64, 32),
    (10, 100, None),
    (40, 1536, 128),
    (6, 40, 16),
    (1, 1, 1),
]


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def made(rows: int, columns: int, group_size: int | None, bits: int, symmetric: bool) -> QuantizedWeight:
    return quantize(normal(rows, columns, seed=1), bits, group_size, symmetric=symmetric)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [8, 4, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_packing_loses_nothing_and_the_twin_multiplies_with_what_it_holds(
    shape: tuple, bits: int, symmetric: bool
) -> None:
    weight = made(*shape, bits, symmetric)
    layer = QuantizedLinear(weight)
    back = layer.quantized()
    assert torch.equal(back.q, weight.q)
    assert torch.equal(back.scales, weight.scales)
    assert (back.zeros is None) == symmetric
    if weight.zeros is not None and back.zeros is not None:
        assert torch.equal(back.zeros, weight.zeros)
    x = normal(3, shape[1])
    got = kernels.linear(x, layer.packed, backend="torch")
    torch.testing.assert_close(got.double(), x.double() @ weight.dequantize().double().T, rtol=1e-5, atol=1e-4)


@needs_numba
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 4, 5, 8, 70])
def test_the_cpu_kernel_errs_by_no_more_than_its_rounding_of_x(
    n: int, shape: tuple, bits: int, symmetric: bool
) -> None:
    weight = made(*shape, bits, symmetric)
    packed = QuantizedLinear(weight).packed
    x = normal(n, shape[1], seed=2)
    half_step = (x.double().abs().amax(1, keepdim=True) / 32767 / 2).expand_as(x)
    w = weight.dequantize().double()
    most = half_step @ w.abs().T + 1e-6 * (x.double().abs() @ w.abs().T) + 1e-6
    found = kernels.linear(x, packed, backend="cpu").double()
    assert bool(((found - x.double() @ w.T).abs() <= most).all())


@needs_numba
@pytest.mark.parametrize("bits", [8, 4])
def test_whole_numbers_are_multiplied_exactly(bits: int) -> None:
    q = torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), (9, 200), generator=torch.Generator().manual_seed(0))
    packed = kernels.pack(q.to(torch.int8), torch.ones(9, 4), None, bits, 64)
    x = torch.zeros(4, 200)
    x[:, 0] = 32767  # so that a step of x is exactly 1
    x[:, 1::64] = torch.tensor([[3.0], [-7.0], [0.0], [100.0]])
    assert torch.equal(kernels.linear(x, packed, backend="cpu"), (x.double() @ q.double().T).float())


@needs_numba
def test_the_longest_groups_do_not_overflow() -> None:
    q = torch.full((1, 40_000), -128, dtype=torch.int8)
    packed = kernels.pack(q, torch.ones(1, 1), None, 8, 40_000)
    got = kernels.linear(torch.full((1, 40_000), -1.0), packed, backend="cpu")
    assert got.item() == pytest.approx(128 * 40_000, rel=1e-3)


@needs_numba
def test_zero_tiny_infinite_and_missing_activations() -> None:
    packed = QuantizedLinear(made(4, 64, 32, 8, True)).packed
    x = torch.zeros(4, 64)
    x[1, 0], x[2, 40], x[3, 1] = 1e-35, float("inf"), float("nan")
    out = kernels.linear(x, packed, backend="cpu")
    assert out[:2].abs().max() == 0
    assert out[2:].isnan().all()


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("gated", [True, False])
def test_with_residual_norm_bias_or_gate_it_equals_the_float_layer(bits: int, symmetric: bool, gated: bool) -> None:
    weight = made(34, 70, 32, bits, symmetric)
    bias = None if gated else normal(34, seed=3)
    layer = Linear(70, 34, not gated, torch.float32, "cpu")
    layer.weight.copy_(weight.dequantize())
    if bias is not None and layer.bias is not None:
        layer.bias.copy_(bias)
    x, delta, norm = normal(3, 70), normal(3, 70, seed=4), normal(70, seed=5)
    expected, got = (
        kernels.norm_linear(x, delta, norm, 1e-5, each.matrix, each.bias, gated=gated)
        for each in (layer, QuantizedLinear(weight, bias))
    )
    torch.testing.assert_close(got[0], expected[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(got[1], expected[1], rtol=1e-3, atol=2e-3)


def test_shapes_that_do_not_fit_are_named() -> None:
    packed = QuantizedLinear(made(4, 64, 32, 8, True)).packed
    with pytest.raises(ValueError, match=r"linear: x \[2, 60\] does not fit weight \[4, 64\]"):
        kernels.linear(torch.ones(2, 60), packed)
    with pytest.raises(ValueError, match=r"bias \[3\] does not fit weight \[4, 64\]"):
        kernels.linear(torch.ones(2, 64), packed, torch.ones(3))
    with pytest.raises(ValueError, match=r"pack: q \[4, 64\] in groups of 32 does not fit scales \[4, 3\]"):
        kernels.pack(torch.zeros(4, 64, dtype=torch.int8), torch.ones(4, 3), None, 8, 32)


def test_the_codes_take_the_bytes_that_they_should() -> None:
    eight, four = (QuantizedLinear(made(10, 256, 128, bits, True)).packed for bits in (8, 4))
    assert eight.n_bytes == 10 * 256 + 10 * 2 * 4
    assert four.n_bytes == 10 * 128 + 10 * 2 * 4


KERNEL_OF_ONE_PROCESS = """
import sys
import torch
from reference_impl import kernels
from reference_impl.quantization.rounding import quantize

x, weight = (torch.randn(n, 256, generator=torch.Generator().manual_seed(n)) for n in (4, 9))
for group_size in map(int, sys.argv[1:]):
    found = quantize(weight, 8, group_size)
    packed = kernels.pack(found.q, found.scales, found.zeros, 8, group_size)
    torch.testing.assert_close(kernels.linear(x, packed), x @ found.dequantize().T, rtol=0, atol=1e-2)
"""


@pytest.mark.timeout(1200)  # three processes compile all kernels
@needs_numba
def test_kernels_that_two_processes_have_compiled_are_told_apart_by_a_third(tmp_path: Path) -> None:
    """Each numbers what it compiles from the start, so a name must say all that the code depends on."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for group_sizes in (["32"], ["128"], ["32", "128"]):
        command = [sys.executable, "-c", KERNEL_OF_ONE_PROCESS, *group_sizes]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
