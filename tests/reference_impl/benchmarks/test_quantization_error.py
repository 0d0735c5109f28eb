"""Rounding error of group-wise quantization: the prediction against a simulation, the measurement by hand."""

import math

import numpy as np
import pytest
import torch

from reference_impl.benchmarks.quality.expected_error import expected_error, expected_largest, relative_error


def test_the_largest_of_one_and_of_two_normal_numbers_is_known_in_closed_form() -> None:
    assert expected_largest(1) == pytest.approx(1.0, abs=1e-4)
    assert expected_largest(2) == pytest.approx(math.sqrt(1 + 2 / math.pi), abs=1e-4)


@pytest.mark.parametrize(("group_size", "bits"), [(2, 4), (8, 4), (32, 4), (512, 4), (32, 8), (128, 8), (64, 6)])
def test_the_prediction_agrees_with_rounding_a_million_normal_numbers(group_size: int, bits: int) -> None:
    groups = np.random.default_rng(0).standard_normal((2**20 // group_size, group_size))
    step = np.abs(groups).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    simulated = np.sqrt(np.mean((groups - np.rint(groups / step) * step) ** 2) / np.mean(groups**2))
    assert expected_error(group_size, bits) == pytest.approx(simulated, rel=0.01)


def test_a_group_of_one_loses_nothing() -> None:
    assert expected_error(1, 4) == 0.0


def test_relative_error_is_a_ratio_of_root_mean_squares_for_numpy_and_torch() -> None:
    weight, restored = [[3.0, 4.0]], [[3.0, 3.0]]  # an error of 1 on a length of 5
    assert relative_error(np.array(weight), np.array(restored)) == pytest.approx(0.2)
    assert relative_error(torch.tensor(weight), torch.tensor(restored)) == pytest.approx(0.2)


def test_bad_input_is_refused_with_what_came() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        relative_error(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="all weights are 0"):
        relative_error(np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="group size of 0"):
        expected_error(0, 4)
    with pytest.raises(ValueError, match="got 1"):
        expected_error(32, 1)
