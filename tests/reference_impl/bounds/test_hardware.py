"""The data-sheet figures that every bound divides by."""

import pytest

from reference_impl.bounds.hardware import GPUS, Gpu, find_gpu


@pytest.mark.parametrize(
    ("key", "peak_flops", "bandwidth", "memory", "ridge"),
    [
        ("h100-sxm", 989.5e12, 3.35e12, 80e9, 295.4),
        ("h200", 989.5e12, 4.8e12, 141e9, 206.1),
        ("a100-80g", 312e12, 2.039e12, 80e9, 153.0),
    ],
)
def test_a_gpu_has_its_data_sheet_figures_and_ridge(key, peak_flops, bandwidth, memory, ridge):
    gpu = GPUS[key]
    assert (gpu.peak_flops, gpu.bandwidth, gpu.memory_bytes) == (peak_flops, bandwidth, memory)
    assert gpu.ridge == pytest.approx(ridge, abs=0.05)


def test_the_generic_card_reads_one_terabyte_a_second():
    assert GPUS["generic-1tb"].bandwidth == 1e12


def test_an_unknown_gpu_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown GPU 'tpu'; known: h100-sxm, h200, a100-80g, generic-1tb"):
        find_gpu("tpu")


@pytest.mark.parametrize("bandwidth", [0, -1.0, float("inf"), float("nan")])
def test_a_gpu_without_a_usable_figure_is_refused_by_name(bandwidth):
    with pytest.raises(ValueError, match=r"odd card: bandwidth must be positive and finite"):
        Gpu("odd card", 1e12, bandwidth, 1e9)
