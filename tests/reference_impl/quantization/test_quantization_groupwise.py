"""Group-wise absmax quantization: fixed examples, the properties that hold for every matrix, and refusals."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reference_impl.quantization.groupwise import (
    dequantize_groupwise,
    dequantize_per_tensor,
    pack_int4,
    quantize_groupwise,
    quantize_per_tensor,
    unpack_int4,
)

OUTLIER = [[0.12, -0.5, 0.33, 0.07, 8.0]]


def restored_exactly(q, scales, group_size):
    """q times the stored scale in float64: dequantization without its last rounding to float32."""
    columns = q.shape[1]
    width = group_size if group_size is not None else columns
    return q * np.repeat(scales.astype(np.float64), width, axis=1)[:, :columns]


def test_one_group_with_an_outlier_gives_the_lesson_s_integers():
    q, scales = quantize_groupwise(np.array(OUTLIER), 5)
    assert q.tolist() == [[2, -8, 5, 1, 127]]
    assert dequantize_groupwise(q, scales, 5)[0] == pytest.approx([0.126, -0.504, 0.315, 0.063, 8.0], abs=5e-4)


@pytest.mark.parametrize(("group_size", "mean_error"), [(5, 0.00639), (4, 0.00069), (2, 0.00041), (1, 0.0)])
def test_smaller_groups_keep_the_outlier_to_itself(group_size, mean_error):
    q, scales = quantize_groupwise(np.array(OUTLIER), group_size)
    error = np.abs(np.array(OUTLIER) - dequantize_groupwise(q, scales, group_size)).mean()
    assert error == pytest.approx(mean_error, abs=5e-6)


def test_halves_are_rounded_to_even():
    q, scales = quantize_groupwise(np.array([[127, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, -126.5]]), 8)
    assert scales.tolist() == [[1.0]]
    assert q.tolist() == [[127, 0, 2, 2, 0, -2, 4, -126]]  # half away from zero: 127 1 2 3 -1 -3 4 -127


@pytest.mark.parametrize("constant", [5.0, 500.0, -3.0])
def test_a_constant_group_comes_back(constant):
    q, scales = quantize_groupwise(np.full((1, 6), constant), 6)
    assert q.tolist() == [[127 if constant > 0 else -127] * 6]
    assert dequantize_groupwise(q, scales, 6) == pytest.approx(constant, rel=1e-6)


def test_the_largest_weight_comes_back_and_the_divisor_is_127():
    q, scales = quantize_groupwise(np.array([[1.0, -1.0, 0.5]]), 3)
    restored = dequantize_groupwise(q, scales, 3)
    assert restored[0, :2] == pytest.approx([1, -1], rel=1e-7)  # absmax / 127.5 would give 0.9961
    assert restored[0, 2] == pytest.approx(64 / 127, rel=1e-6)


def test_an_all_zero_group_has_scale_0_and_does_not_touch_its_neighbour():
    q, scales = quantize_groupwise(np.array([[0.0, 0.0, 2.54, -1.27]]), 2)
    assert q.tolist() == [[0, 0, 127, -64]]
    assert scales[0, 0] == 0
    assert np.isfinite(scales).all()
    assert dequantize_groupwise(q, scales, 2)[0, :2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("columns", "group_size", "n_groups"), [(1376, 64, 22), (10, 4, 3), (3, 100, 1), (8, 4, 2)])
def test_the_last_partial_group_is_kept(columns, group_size, n_groups):
    weight = np.linspace(-1, 2, 2 * columns).reshape(2, columns)
    q, scales = quantize_groupwise(weight, group_size)
    assert q.shape == (2, columns)
    assert scales.shape == (2, n_groups)
    assert np.abs(dequantize_groupwise(q, scales, group_size) - weight).max() <= 2 / 127 / 2 * 1.001


def test_a_group_of_tiny_weights_is_not_flushed_to_zero():
    q, scales = quantize_groupwise(np.array([[1e-6, -5e-7]]), 2)  # a fp16 scale would be 0 here
    assert q.tolist() == [[127, -64]] or q.tolist() == [[127, -63]]  # 63.5, give or take the scale's rounding
    assert scales[0, 0] == pytest.approx(1e-6 / 127, rel=1e-6)


def test_a_scale_below_float32_s_normal_range_still_keeps_the_error_bound():
    smallest = 2.0**-149
    weight = np.array([[smallest, -smallest, 7 * smallest, 200 * smallest, 1e-300]])
    q, scales = quantize_groupwise(weight, 5)
    assert scales[0, 0] > 0
    assert np.abs(weight - restored_exactly(q, scales, 5)).max() <= scales[0, 0] / 2


def test_no_group_size_means_one_scale_per_row():
    weight = np.array([[1.0, 127.0], [0.127, 0.01]])
    q, scales = quantize_groupwise(weight, None)
    assert q.tolist() == [[1, 127], [127, 10]]
    assert scales == pytest.approx(np.array([[1.0], [0.001]]))
    assert dequantize_groupwise(q, scales, None) == pytest.approx(weight, rel=1e-5)


def test_one_scale_for_the_whole_matrix_rounds_a_small_row_away():
    weight = np.array([[1.0, 127.0], [0.3, 0.6]])
    q, scale = quantize_per_tensor(weight)
    assert q.tolist() == [[1, 127], [0, 1]]
    assert scale.shape == (1, 1)
    assert dequantize_per_tensor(q, scale).tolist() == [[1, 127], [0, 1]]


@pytest.mark.parametrize("seed", range(10))
def test_64_channels_over_a_factor_100_need_a_scale_each(seed):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(64, 256)) * np.geomspace(0.01, 1, 64)[:, None]

    def error_of_the_smallest_channel(restored):
        return np.linalg.norm(weight[0] - restored[0]) / np.linalg.norm(weight[0])

    one_for_all = error_of_the_smallest_channel(dequantize_per_tensor(*quantize_per_tensor(weight)))
    one_a_channel = error_of_the_smallest_channel(dequantize_groupwise(*quantize_groupwise(weight, None), None))
    assert 0.60 < one_for_all < 0.90  # the lesson's own draw: 74 %
    assert 0.005 < one_a_channel < 0.010  # 0.8 %


@pytest.mark.parametrize(("bits", "levels"), [(2, 1), (3, 3), (4, 7), (5, 15), (8, 127)])
def test_fewer_bits_use_fewer_levels(bits, levels):
    weight = np.linspace(-1, 1, 1001)[None, :]
    q, scales = quantize_groupwise(weight, None, bits)
    assert np.unique(q).tolist() == list(range(-levels, levels + 1))
    assert scales[0, 0] == pytest.approx(1 / levels)


def test_numpy_and_torch_get_the_same_answer_each_in_its_own_kind():
    weight = np.random.default_rng(0).normal(size=(5, 37)).astype(np.float32)
    q, scales = quantize_groupwise(weight, 8)
    q_torch, scales_torch = quantize_groupwise(torch.tensor(weight, requires_grad=True), 8)
    assert (q.dtype, scales.dtype) == (np.int8, np.float32)
    assert (q_torch.dtype, scales_torch.dtype) == (torch.int8, torch.float32)
    assert np.array_equal(q, q_torch.numpy())
    assert np.array_equal(scales, scales_torch.numpy())
    restored = dequantize_groupwise(q_torch, scales_torch, 8)
    assert restored.dtype == torch.float32
    assert np.array_equal(dequantize_groupwise(q, scales, 8), restored.numpy())


def test_half_precision_weights_are_quantized_as_the_values_they_hold():
    weight = torch.tensor(OUTLIER).to(torch.bfloat16)
    q, scales = quantize_groupwise(weight, 2)
    expected_q, expected_scales = quantize_groupwise(weight.double(), 2)
    assert torch.equal(q, expected_q)
    assert torch.equal(scales, expected_scales)


def test_the_weight_itself_is_left_as_it_was():
    weight = np.array(OUTLIER)
    quantize_groupwise(weight, 2)
    assert weight.tolist() == OUTLIER


def test_torch_is_not_imported_for_numpy_arrays():
    code = "import sys, reference_impl.quantization.groupwise as g; g.pack_int4([1]); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# Properties. Weights stay within float32's normal range; what happens below it has its own test above.
matrices = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
    elements=st.one_of(
        st.just(0.0), st.floats(2.0**-100, 2.0**100, width=32), st.floats(-(2.0**100), -(2.0**-100), width=32)
    ),
)
group_sizes = st.one_of(st.none(), st.integers(1, 12))


@given(matrices, group_sizes, st.integers(2, 8))
def test_every_weight_is_within_half_a_scale_of_what_is_stored_for_it(weight, group_size, bits):
    q, scales = quantize_groupwise(weight, group_size, bits)
    half = restored_exactly(np.ones_like(q), scales, group_size) / 2
    assert (np.abs(weight - restored_exactly(q, scales, group_size)) <= half * (1 + 1e-6)).all()
    assert np.abs(q).max() <= 2 ** (bits - 1) - 1


@given(matrices, group_sizes)
def test_dequantization_is_q_times_scale_to_float32_precision(weight, group_size):
    q, scales = quantize_groupwise(weight, group_size)
    restored = dequantize_groupwise(q, scales, group_size)
    np.testing.assert_allclose(restored, restored_exactly(q, scales, group_size), rtol=2.0**-24)


@given(matrices, group_sizes)
def test_q_is_the_nearest_integer_for_the_stored_scale_and_even_on_a_tie(weight, group_size):
    q, scales = quantize_groupwise(weight, group_size)
    width = group_size or weight.shape[1]
    for (row, column), value in np.ndenumerate(weight):
        scale = Fraction(float(scales[row, column // width]))
        exact = round(Fraction(float(value)) / scale) if scale else 0  # Fraction rounds half to even, without error
        assert q[row, column] == exact


@given(matrices, group_sizes)
def test_quantizing_what_was_restored_changes_nothing_more(weight, group_size):
    q, scales = quantize_groupwise(weight, group_size)
    once = dequantize_groupwise(q, scales, group_size)
    again, scales_again = quantize_groupwise(once, group_size)
    assert np.array_equal(again, q)
    np.testing.assert_allclose(scales_again, scales, rtol=2.0**-22)  # the last bit may move


@given(matrices, group_sizes, st.integers(-10, 10))
def test_a_power_of_two_moves_into_the_scale(weight, group_size, exponent):
    q, scales = quantize_groupwise(weight, group_size)
    q_scaled, scales_scaled = quantize_groupwise(weight * np.float32(2.0**exponent), group_size)
    assert np.array_equal(q_scaled, q)
    assert np.array_equal(scales_scaled, scales * np.float32(2.0**exponent))


@given(matrices, group_sizes)
def test_negating_the_weights_negates_q_and_keeps_the_scales(weight, group_size):
    q, scales = quantize_groupwise(weight, group_size)
    q_negated, scales_negated = quantize_groupwise(-weight, group_size)
    assert np.array_equal(q_negated, -q)
    assert np.array_equal(scales_negated, scales)


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "1e39"])
@pytest.mark.parametrize("as_matrix", [np.array, torch.DoubleTensor])
@pytest.mark.parametrize("quantize", [lambda w: quantize_groupwise(w, 2), quantize_per_tensor])
def test_a_weight_that_float32_cannot_hold_is_named_with_its_position(bad, as_matrix, quantize):
    weight = as_matrix([[1.0, 2.0, 3.0], [4.0, 5.0, float(bad)]])
    with pytest.raises(ValueError, match=r"weight\[1, 2\] is (nan|-?inf|1e\+39), expected a finite number"):
        quantize(weight)


@pytest.mark.parametrize("group_size", [0, -1, 2.5, "4", True])
def test_a_bad_group_size_is_refused(group_size):
    with pytest.raises(ValueError, match=r"group size must be a positive integer, got "):
        quantize_groupwise(np.ones((2, 4)), group_size)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"weight must be \[rows, columns\], got shape \(3,\)"):
        quantize_groupwise([1.0, 2.0, 3.0], 2)
    q, scales = quantize_groupwise(np.ones((2, 5)), 2)
    with pytest.raises(ValueError, match=r"q \(2, 5\) at group size 4 needs scales \(2, 2\), got \(2, 3\)"):
        dequantize_groupwise(q, scales, 4)
    with pytest.raises(ValueError, match="bits must be 2 to 8, got 1"):
        quantize_groupwise(np.ones((2, 5)), 2, bits=1)
    with pytest.raises(ValueError, match="weight must hold real numbers"):
        quantize_groupwise([["a", "b"]], 2)


# Two 4-bit integers in a byte
def test_the_even_index_goes_into_the_low_half_in_two_s_complement():
    packed = pack_int4([1, -1, 7, -8, 3])
    assert [f"{byte:02x}" for byte in packed] == ["f1", "87", "03"]
    assert packed.dtype == np.uint8
    assert unpack_int4(packed, 5).tolist() == [1, -1, 7, -8, 3]


@given(hnp.arrays(np.int8, hnp.array_shapes(max_dims=3, max_side=7), elements=st.integers(-8, 7)))
@settings(max_examples=50)
def test_unpacking_undoes_packing_for_every_shape_in_both_libraries(q):
    packed = pack_int4(q)
    assert packed.shape == (*q.shape[:-1], (q.shape[-1] + 1) // 2)
    assert np.array_equal(unpack_int4(packed, q.shape[-1]), q)
    packed_torch = pack_int4(torch.tensor(q))
    assert packed_torch.dtype == torch.uint8
    assert np.array_equal(packed_torch.numpy(), packed)
    assert np.array_equal(unpack_int4(packed_torch, q.shape[-1]).numpy(), q)


def test_all_16_values_survive_packing_in_either_half():
    pairs = [[low, high] for low in range(-8, 8) for high in range(-8, 8)]
    packed = pack_int4(pairs)
    assert sorted(packed[:, 0].tolist()) == list(range(256))
    assert unpack_int4(packed, 2).tolist() == pairs


@pytest.mark.parametrize("bad", [8, -9, 0.5, 300])
def test_a_value_that_4_bits_cannot_hold_is_named_with_its_position(bad):
    with pytest.raises(ValueError, match=rf"q\[2\] is {bad}, expected an integer of -8...7"):
        pack_int4([0, 1, bad])


def test_unpacking_a_count_that_the_bytes_do_not_hold_is_refused():
    with pytest.raises(ValueError, match=r"5 values need 3 bytes along the last axis, got shape \(2,\)"):
        unpack_int4(np.zeros(2, np.uint8), 5)
    with pytest.raises(ValueError, match=r"packed\[0\] is 256, expected a byte"):
        unpack_int4([256], 2)


def test_an_empty_list_packs_to_nothing():
    assert pack_int4([]).tolist() == []
    assert unpack_int4(np.zeros(0, np.uint8), 0).tolist() == []
