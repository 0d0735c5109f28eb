"""Which backend runs an operation, and which inputs are refused before a backend sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from paged_cases import Case, paged

from reference_impl import kernels
from reference_impl.kernels.reference import REFERENCE


def test_no_rows_give_no_rows() -> None:
    assert kernels.linear(torch.zeros(0, 8), torch.zeros(3, 8)).shape == (0, 3)


def test_float64_is_computed_in_float64() -> None:
    x = torch.tensor([[1.0, 2**-40]], dtype=torch.float64)
    assert kernels.linear(x, torch.ones(1, 2, dtype=torch.float64)).item() == 1 + 2**-40


def test_a_gradient_flows_when_one_is_wanted() -> None:
    weight = torch.ones(2, 3, requires_grad=True)
    kernels.linear(torch.tensor([[1.0, 2.0, 3.0]]), weight).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]


def test_a_transposed_weight_is_multiplied_right() -> None:
    weight = torch.arange(6.0).view(2, 3).T  # [3, 2]
    assert kernels.linear(torch.tensor([[1.0, 10.0]]), weight).tolist() == [[30.0, 41.0, 52.0]]


def test_the_environment_turns_fast_kernels_off() -> None:
    code = (
        "import sys, torch; from reference_impl import kernels\n"
        "kernels.linear(torch.ones(1, 4), torch.ones(2, 4)); print('numba' in sys.modules)"
    )
    for wanted, numba_used in (("torch", "False"), ("auto", "True")):
        environment = {**os.environ, "LLM_COURSE_KERNELS": wanted}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        assert run.stdout.strip() == numba_used


def test_without_numba_plain_torch_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reference_impl.kernels.cpu", None)  # makes its import fail
    kernels._load.cache_clear()
    kernels._default.cache_clear()
    try:
        assert kernels._default("cpu") is REFERENCE
        assert kernels.linear(torch.ones(1, 4), torch.ones(2, 4)).tolist() == [[4.0, 4.0]]
        with pytest.raises(ValueError, match="kernel backend 'cpu' is not installed"):
            kernels.linear(torch.ones(1, 4), torch.ones(2, 4), backend="cpu")
    finally:
        kernels._load.cache_clear()
        kernels._default.cache_clear()


def test_an_asked_for_backend_says_what_it_cannot_do() -> None:
    x, weight = torch.ones(1, 4, dtype=torch.float64), torch.ones(2, 4, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"linear: kernel backend 'cpu' does not take \[1, 4\] torch.float64 on cpu"):
        kernels.linear(x, weight, backend="cpu")
    with pytest.raises(ValueError, match="unknown kernel backend 'cuda'; known: 'torch', 'cpu', 'triton'"):
        kernels.linear(x, weight, backend="cuda")


@pytest.mark.parametrize(
    ("x", "weight", "bias", "message"),
    [
        ((2, 5), (3, 4), None, r"linear: x \[2, 5\] does not fit weight \[3, 4\]"),
        ((4,), (3, 4), None, r"linear: x \[4\] does not fit weight \[3, 4\]"),
        ((2, 4), (3, 4), (4,), r"linear: bias \[4\] does not fit weight \[3, 4\]"),
    ],
)
def test_linear_names_shapes_that_do_not_fit(x: tuple, weight: tuple, bias: tuple | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.linear(torch.ones(x), torch.ones(weight), None if bias is None else torch.ones(bias))


def test_attention_names_shapes_that_do_not_fit() -> None:
    made = paged(Case((5, 3), (1, 1)))
    with pytest.raises(ValueError, match=r"q \[2, 4, 15\], keys \[5, 2, 4, 16\]"):
        kernels.paged_attention(made.q[..., :15], made.kv, 0)
    with pytest.raises(ValueError, match="3 heads cannot share 2 KV heads evenly"):
        kernels.paged_attention(made.q[:, :3], made.kv, 0)
    with pytest.raises(ValueError, match="1 context lengths are not of the same sequences"):
        kernels.paged_attention(made.q, replace(made.kv, context_lens=made.kv.context_lens[:1]), 0)


def test_store_kv_names_shapes_that_do_not_fit() -> None:
    made = paged(Case((5,), (1,)))
    with pytest.raises(
        ValueError, match=r"store_kv: k \[5, 2, 16\], v \[5, 2, 16\], 4 slots and the cache \[4, 2, 4, 16\]"
    ):
        kernels.store_kv(made.k, made.v, replace(made.kv, slots=made.kv.slots[:4]), 0)


def test_the_steps_between_the_matrices_name_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"rms_norm: weight \[3\] does not fit x \[2, 4\]"):
        kernels.rms_norm(torch.ones(2, 4), torch.ones(3), 1e-5)
    with pytest.raises(ValueError, match=r"rotate: cos \[3, 1, 8\] and sin \[3, 1, 8\] do not fit x \[2, 5, 8\]"):
        kernels.rotate(torch.ones(2, 5, 8), torch.ones(3, 1, 8), torch.ones(3, 1, 8))
    with pytest.raises(ValueError, match=r"silu_mul: x \[2, 7\] does not hold a gate and as much again"):
        kernels.silu_mul(torch.ones(2, 7))


def test_norm_rotation_and_gate_stay_in_float64() -> None:
    x, one = torch.tensor([[3.0, 4.0]], dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    assert kernels.rms_norm(x, one, 0.0)[0, 0].item() == pytest.approx(3 / 12.5**0.5, rel=1e-14)
    assert kernels.silu_mul(x).item() == pytest.approx(12 / (1 + 2.718281828459045**-3), rel=1e-14)
    quarter = torch.tensor([[[-1.0, 1.0]]], dtype=torch.float64)  # sin of 90 degrees, minus sign in the first half
    assert kernels.rotate(x[None], torch.zeros_like(quarter), quarter)[0, 0].tolist() == [-4.0, 3.0]
