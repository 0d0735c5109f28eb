"""Rounding to a grid: the error bound for the stored scale, zero points, scale dtypes, what is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.quantization.groupwise import quantize_groupwise
from reference_impl.quantization.rounding import quantize
from reference_impl.quantization.weight import QuantizedWeight

HALF, BRAIN = torch.float16, torch.bfloat16


def matrix(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float32)


def scale_of_each(weight: QuantizedWeight) -> torch.Tensor:
    return weight.scales.double().repeat_interleave(weight.group_size, 1)[:, : weight.q.shape[1]]


def exactly(weight: QuantizedWeight) -> torch.Tensor:
    """Dequantized in float64, without the last rounding to float32."""
    zeros = 0 if weight.zeros is None else weight.zeros.double().repeat_interleave(weight.group_size, 1)
    zeros = zeros if weight.zeros is None else zeros[:, : weight.q.shape[1]]
    return (weight.q.double() - zeros) * scale_of_each(weight)


# --- fixed examples


def test_a_range_far_from_zero_is_widened_to_include_zero_in_both_halves_of_the_formula():
    found = quantize(matrix([10.5, 11, 11.5, 12, 12.5, 13, 13.5, 14]), 4, None, symmetric=False)
    expected = [10.267, 11.2, 11.2, 12.133, 12.133, 13.067, 13.067, 14.0]  # steps of 14 / 15
    assert found.dequantize()[0].tolist() == pytest.approx(expected, abs=5e-4)
    assert found.zeros.tolist() == [[-8]]


@pytest.mark.parametrize("constant", [5.0, 500.0, -5.0, 1e-3])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_constant_group_comes_back_to_within_half_a_scale(constant, symmetric):
    found = quantize(torch.full((1, 8), constant), 4, None, symmetric=symmetric)
    assert found.dequantize()[0].tolist() == pytest.approx([constant] * 8, rel=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_an_all_zero_group_is_exactly_zero_with_a_finite_scale(symmetric):
    found = quantize(matrix([0, 0, 1, -2]), 4, 2, symmetric=symmetric)
    assert found.dequantize()[0, :2].tolist() == [0, 0]
    assert found.q[0, :2].tolist() == [0, 0]
    assert found.scales.isfinite().all()


@pytest.mark.parametrize(("columns", "width", "groups"), [(1376, 64, 22), (10, 4, 3)])
def test_the_last_partial_group_has_a_scale_of_its_own(columns, width, groups):
    weight = torch.linspace(-1, 2, columns)[None]
    found = quantize(weight, 8, width, symmetric=False)
    assert found.scales.shape == (1, groups)
    assert found.q.shape == (1, columns)
    assert (found.dequantize() - weight).abs().max() <= found.scales.max() / 2 * 1.001


def test_halves_go_to_even():
    found = quantize(matrix([127, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, -126.5]), 8, None)
    assert found.q.tolist() == [[127, 0, 2, 2, 0, -2, 4, -126]]


def test_the_largest_weight_comes_back_exactly_since_the_divisor_is_127():
    assert quantize(matrix([1, -1, 0.5]), 8, None).dequantize()[0, :2].tolist() == [1, -1]


def test_one_scale_for_the_tensor_one_a_row_one_a_group():
    weight = matrix([1, 127, 2, 254], [0.25, 0.5, 1.27, 0.01])
    assert quantize(weight, 8, "tensor").scales.tolist() == [[2.0], [2.0]]
    assert quantize(weight, 8, 2).scales.tolist()[0] == [1.0, 2.0]
    assert quantize(weight, 8, None).scales[1].item() == pytest.approx(0.01)


@pytest.mark.parametrize("bits", range(2, 9))
def test_symmetric_grids_leave_out_the_lowest_integer_and_asymmetric_ones_use_all(bits):
    weight = torch.linspace(-1, 1, 4001)[None]
    half = 2 ** (bits - 1)
    assert quantize(weight, bits, None).q.unique().tolist() == list(range(1 - half, half))
    assert quantize(weight.abs(), bits, None, symmetric=False).q.unique().tolist() == list(range(-half, half))


def test_the_symmetric_float32_grid_is_that_of_the_lesson_s_function():
    weight = torch.randn(5, 37, generator=torch.Generator().manual_seed(0))
    for bits, width in [(8, 8), (4, 16), (3, None)]:
        q, scales = quantize_groupwise(weight, width, bits)
        found = quantize(weight, bits, width)
        assert torch.equal(found.q, q)
        assert torch.equal(found.scales, scales)


def test_q_is_nearest_for_the_scale_as_stored_not_for_the_one_before_rounding():
    weight = matrix([10.0, 4.925])  # 10/7 = 1.42857 is stored as 1.4286 in float16 and as 1.4297 in bfloat16
    for dtype in (torch.float32, HALF, BRAIN):
        found = quantize(weight, 4, None, scale_dtype=dtype)
        stored = found.scales.double().item()
        assert found.q.tolist() == [[round(10 / stored), round(4.925 / stored)]]
        assert found.scales.dtype == dtype


def test_bits_per_weight_count_scales_and_zero_points():
    weight = torch.ones(4, 256)
    assert quantize(weight, 4, 128, scale_dtype=HALF).bits_per_weight == 4.125
    assert quantize(weight, 4, 128, scale_dtype=HALF, symmetric=False).bits_per_weight == 4.15625
    assert quantize(weight, 8, 128, scale_dtype=HALF).bits_per_weight == 8.125
    assert quantize(weight, 3, 128, scale_dtype=HALF).bits_per_weight == 3.125
    assert quantize(weight, 4, 32, scale_dtype=HALF).n_bytes == 4 * (128 + 8 * 2)


# --- what holds for every matrix

weights = st.integers(0, 10**9).map(
    lambda seed: torch.randn(3, 11, generator=torch.Generator().manual_seed(seed)).mul(
        torch.tensor([[1e-3], [1.0], [1e3]])
    )
)
widths = st.sampled_from([None, 1, 2, 4, 11, 64])
dtypes = st.sampled_from([torch.float32, HALF, BRAIN])


@settings(max_examples=60, deadline=None)
@given(weights, st.integers(2, 8), widths, st.booleans(), dtypes, st.floats(-1, 1))
def test_every_weight_is_within_half_the_stored_scale(weight, bits, width, symmetric, dtype, shift):
    weight = weight + shift * weight.abs().max()
    found = quantize(weight, bits, width, symmetric=symmetric, scale_dtype=dtype)
    assert ((weight.double() - exactly(found)).abs() <= scale_of_each(found) / 2 * (1 + 1e-6)).all()


@settings(max_examples=30, deadline=None)
@given(weights, st.integers(2, 8), widths, st.booleans())
def test_quantizing_the_result_again_changes_no_integer(weight, bits, width, symmetric):
    once = quantize(weight, bits, width, symmetric=symmetric)
    again = quantize(exactly(once), bits, width, symmetric=symmetric)
    torch.testing.assert_close(exactly(again), exactly(once), rtol=1e-6, atol=0)


@settings(max_examples=30, deadline=None)
@given(weights, st.integers(2, 8), widths, st.booleans(), st.integers(-8, 8))
def test_a_power_of_two_moves_into_the_scale_alone(weight, bits, width, symmetric, exponent):
    plain = quantize(weight, bits, width, symmetric=symmetric)
    scaled = quantize(weight * 2.0**exponent, bits, width, symmetric=symmetric)
    assert torch.equal(scaled.q, plain.q)
    assert torch.equal(scaled.scales, plain.scales * 2.0**exponent)


@settings(max_examples=30, deadline=None)
@given(weights, st.integers(2, 8), widths, dtypes)
def test_a_symmetric_grid_turns_the_sign_with_the_weight(weight, bits, width, dtype):
    plain = quantize(weight, bits, width, scale_dtype=dtype)
    turned = quantize(-weight, bits, width, scale_dtype=dtype)
    assert torch.equal(turned.q, -plain.q)
    assert torch.equal(turned.scales, plain.scales)


def test_rows_quantized_in_several_chunks_are_those_quantized_at_once(monkeypatch):
    weight = torch.randn(9, 20, generator=torch.Generator().manual_seed(1))
    whole = quantize(weight, 4, 8, symmetric=False)
    monkeypatch.setattr("reference_impl.quantization.rounding._CHUNK", 45)  # two rows at a time
    parts = quantize(weight, 4, 8, symmetric=False)
    assert torch.equal(parts.dequantize(), whole.dequantize())


# --- what is refused


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_infinity_and_nan_are_named_with_their_position(bad):
    with pytest.raises(ValueError, match=r"weight\[1, 0\] is (-?inf|nan), expected a finite number"):
        quantize(matrix([1, 2, 3], [bad, 1, 2]), 8, None)


def test_a_scale_that_float16_would_turn_into_0_or_infinity_is_refused_and_float32_keeps_it():
    with pytest.raises(ValueError, match=r"group \[0, 1\]: its scale 7.87e-09 becomes 0 in float16"):
        quantize(matrix([1, 1, 1e-6, 0]), 8, 2, scale_dtype=HALF)
    with pytest.raises(ValueError, match=r"group \[0, 0\]: its scale 1e\+06 becomes inf in float16"):
        quantize(matrix([7e6]), 4, None, scale_dtype=HALF)
    assert quantize(matrix([1e-6, 0]), 8, 2).dequantize()[0].tolist() == pytest.approx([1e-6, 0])


def test_a_coarse_float16_scale_near_its_smallest_still_keeps_the_bound():
    weight = matrix([127 * 8.9e-8, 1e-7])  # float16 has 6e-8 and 1.2e-7 there, nothing between
    found = quantize(weight, 8, None, scale_dtype=HALF)
    assert ((weight.double() - exactly(found)).abs() <= scale_of_each(found) / 2).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": torch.ones(3)}, r"weight must be floats \[rows, columns\]"),
        ({"weight": torch.ones(2, 2, dtype=torch.int8)}, "weight must be floats"),
        ({"bits": 9}, "bits must be 2 to 8, got 9"),
        ({"bits": 1}, "bits must be 2 to 8, got 1"),
        ({"group_size": 0}, "group size must be a positive integer"),
        ({"group_size": 2.5}, "group size must be a positive integer"),
        ({"scale_dtype": torch.int8}, "scale_dtype must be one of"),
    ],
)
def test_other_bad_arguments_are_named(change, message):
    arguments = {"weight": torch.ones(2, 4), "bits": 4, "group_size": 2} | change
    with pytest.raises(ValueError, match=message):
        quantize(**arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": torch.zeros(2, 4)}, "q must be int8"),
        ({"scales": torch.ones(2, 3)}, r"scales must be floats \(2, 2\)"),
        ({"scales": torch.full((2, 2), float("nan"))}, "scales must be finite"),
        ({"zeros": torch.zeros(2, 2)}, "zeros must be int8"),
        ({"q": torch.full((2, 4), 8, dtype=torch.int8)}, "q must be 4-bit integers, -8 to 7"),
        ({"bits": 9}, "bits must be 2 to 8"),
        ({"group_size": 0}, "group_size must be at least 1"),
    ],
)
def test_a_quantized_weight_says_which_part_does_not_fit(change, message):
    parts = {"q": torch.zeros(2, 4, dtype=torch.int8), "scales": torch.ones(2, 2), "zeros": None}
    with pytest.raises(ValueError, match=message):
        QuantizedWeight(**(parts | {"bits": 4, "group_size": 2} | change))
