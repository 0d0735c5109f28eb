"""GPTQ against its definition by repeated inversion, and the invariances that public implementations broke."""

from __future__ import annotations

import pytest
import torch

from reference_impl.quantization.gptq import gptq, inverse_factor, output_error
from reference_impl.quantization.rounding import quantize


def correlated(columns: int, seed: int = 0, rows: int = 24, samples: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
    """A weight, and the Hessian of inputs whose columns go together."""
    numbers = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=numbers)
    mixing = torch.randn(columns, columns, generator=numbers) + 2 * torch.eye(columns)
    inputs = torch.randn(samples, columns, generator=numbers) @ mixing
    return weight, inputs.T @ inputs


def by_inversion(weight: torch.Tensor, hessian: torch.Tensor, scales: torch.Tensor, limit: int) -> torch.Tensor:
    """The definition: after each column invert the Hessian of what is left, and move the columns that are left."""
    weight, left = weight.double().clone(), hessian.double()
    q = torch.zeros_like(weight)
    for i in range(weight.shape[1]):
        inverse = torch.linalg.inv(left[i:, i:])
        q[:, i] = (weight[:, i] / scales).round().clamp(-limit, limit)
        error = weight[:, i] - q[:, i] * scales
        weight[:, i:] -= torch.outer(error / inverse[0, 0], inverse[0])
    return q


@pytest.mark.parametrize("block", [1, 2, 4, 128])
def test_six_columns_equal_brute_force_inversion(block):
    weight, hessian = correlated(6)
    damped = hessian.double() + 0.01 * hessian.double().diagonal().mean() * torch.eye(6)
    found = gptq(weight, hessian, 4, None, block=block)
    assert torch.equal(found.q.double(), by_inversion(weight, damped, found.scales[:, 0].double(), 7))
    assert torch.equal(found.scales, quantize(weight, 4, None).scales)  # one group: its grid is chosen at the start


@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_diagonal_hessian_leaves_nothing_to_repair_and_gives_plain_rounding_bit_for_bit(act_order, symmetric):
    weight, _ = correlated(50)
    diagonal = torch.diag(torch.rand(50, generator=torch.Generator().manual_seed(2)))
    found = gptq(weight, diagonal, 3, 16, act_order=act_order, symmetric=symmetric)
    expected = quantize(weight, 3, 16, symmetric=symmetric)
    assert torch.equal(found.q, expected.q)
    assert torch.equal(found.scales, expected.scales)
    assert torch.equal(found.dequantize(), expected.dequantize())


@pytest.mark.parametrize("act_order", [False, True])
def test_the_result_is_the_same_for_every_block_size(act_order):
    weight, hessian = correlated(256, samples=1000)
    first = gptq(weight, hessian, 4, 32, block=64, act_order=act_order)
    for block in (1, 20, 32, 128, 256, 1000):
        other = gptq(weight, hessian, 4, 32, block=block, act_order=act_order)
        assert torch.equal(other.q, first.q)
        assert torch.equal(other.scales, first.scales)


def test_a_group_s_grid_comes_from_the_columns_as_updated_when_it_is_reached():
    weight, hessian = correlated(64)
    found = gptq(weight, hessian, 4, 32)
    plain = quantize(weight, 4, 32)
    assert torch.equal(found.scales[:, 0], plain.scales[:, 0])  # nothing had been updated yet
    assert not torch.equal(found.scales[:, 1], plain.scales[:, 1])


@pytest.mark.parametrize("factor", [1000.0, 1e-6])
def test_the_hessian_s_scale_does_not_matter(factor):
    weight, hessian = correlated(64)
    assert torch.equal(gptq(weight, hessian * factor, 4, 32).q, gptq(weight, hessian, 4, 32).q)


def test_three_samples_for_six_columns_are_enough_thanks_to_damping():
    weight, hessian = correlated(6, samples=3)
    found = gptq(weight, hessian, 4, None)
    assert found.dequantize().isfinite().all()
    assert output_error(weight, found.dequantize(), hessian) <= output_error(
        weight, quantize(weight, 4, None).dequantize(), hessian
    )
    with pytest.raises(ValueError, match="not positive definite with damping 0: take more samples or damping"):
        gptq(weight, torch.zeros(6, 6) + torch.ones(6, 6), 4, None, damping=0.0)


def test_inputs_that_never_occurred_are_rounded_plainly():
    weight, hessian = correlated(8)
    hessian[3], hessian[:, 3] = 0, 0
    found = gptq(weight, hessian, 4, None)
    assert torch.equal(found.q[:, 3], quantize(weight, 4, None).q[:, 3])
    nothing = gptq(weight, torch.zeros(8, 8), 4, None)
    assert torch.equal(nothing.q, quantize(weight, 4, None).q)


@pytest.mark.parametrize(("bits", "width"), [(4, 32), (3, 32), (4, None), (8, 16), (2, 7)])
def test_outputs_err_less_than_after_plain_rounding(bits, width):
    weight, hessian = correlated(96)
    plain = output_error(weight, quantize(weight, bits, width).dequantize(), hessian)
    assert output_error(weight, gptq(weight, hessian, bits, width).dequantize(), hessian) < 0.95 * plain


def test_act_order_helps_where_a_few_inputs_are_much_larger():
    weight, hessian = correlated(96)
    sizes = torch.ones(96)
    sizes[[40, 70, 90]] = 30.0
    hessian = hessian * sizes[:, None] * sizes
    errors = [
        output_error(weight, gptq(weight, hessian, 3, 32, act_order=order).dequantize(), hessian)
        for order in (False, True)
    ]
    assert errors[1] < errors[0]


def test_the_output_error_is_that_of_the_outputs():
    numbers = torch.Generator().manual_seed(3)
    x, weight = torch.randn(50, 8, generator=numbers).double(), torch.randn(5, 8, generator=numbers).double()
    restored = quantize(weight, 3, None).dequantize(torch.float64)
    expected = (x @ weight.T - x @ restored.T).norm() / (x @ weight.T).norm()
    assert output_error(weight, restored, x.T @ x) == pytest.approx(float(expected))


def test_the_factor_is_that_of_the_damped_inverse():
    _, hessian = correlated(12)
    upper = inverse_factor(hessian.double(), 0.1)
    damped = hessian.double() + 0.1 * hessian.double().diagonal().mean() * torch.eye(12)
    torch.testing.assert_close(upper.T @ upper @ damped, torch.eye(12, dtype=torch.float64))
    assert torch.equal(upper, upper.triu())


def test_rows_do_not_depend_on_each_other(monkeypatch):
    weight, hessian = correlated(40)
    whole = gptq(weight, hessian, 4, 16, symmetric=False)
    monkeypatch.setattr("reference_impl.quantization.gptq._CHUNK", 200)  # five rows at a time
    assert torch.equal(gptq(weight, hessian, 4, 16, symmetric=False).dequantize(), whole.dequantize())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hessian": torch.eye(5)}, r"weight has 6 columns: expected a Hessian \(6, 6\), got \(5, 5\)"),
        ({"hessian": torch.full((6, 6), float("nan"))}, "the Hessian holds NaN or infinity"),
        ({"weight": torch.full((2, 6), float("inf"))}, r"weight\[0, 0\] is inf"),
        ({"group_size": "tensor"}, "group size must be a number or None"),
        ({"block": 0}, "block must be at least 1"),
        ({"bits": 1}, "bits must be 2 to 8"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"weight": torch.ones(2, 6), "hessian": torch.eye(6), "bits": 4, "group_size": 2} | change
    with pytest.raises(ValueError, match=message):
        gptq(**arguments)
