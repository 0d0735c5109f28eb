"""Lesson 4, part 1, runs from clean, shows what it promises, and its prose agrees with `reference_impl`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lesson_run import Lesson

from reference_impl.benchmarks.quality.expected_error import expected_error, relative_error
from reference_impl.bounds.arithmetic import bits_per_weight, weight_bytes
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS
from reference_impl.commands.quantize import quantize_group
from reference_impl.quantization.floating import float_values
from reference_impl.quantization.groupwise import (
    dequantize_groupwise,
    dequantize_per_tensor,
    quantize_groupwise,
    quantize_per_tensor,
)

QUIZZES = Path(__file__).parents[2] / "interactives" / "quizzes"


@pytest.fixture(scope="module")
def run(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("04a_number_formats")


@pytest.fixture(scope="module")
def prose(run: Lesson) -> str:
    return run.prose


def test_it_leads_to_its_problem_set(prose: str) -> None:
    assert "ps3_quantization" in prose


# --- the numbers in the prose


def test_prose_numbers_of_one_group(prose: str) -> None:
    scale, q = quantize_group([0.12, -0.5, 0.33, 0.07, 8.0])
    assert f"8.0 / 127 = {scale:.3f}" in prose
    assert f"0.07 is {0.07 / scale:.1f} steps, so it becomes {q[3]} and comes back as {q[3] * scale:.3f}" in prose
    assert f"That is {1 - q[3] * scale / 0.07:.0%} off" in prose
    largest = max(map(abs, q[:4]))
    assert f"share {2 * largest + 1} levels of 255, from −{largest} to {largest}" in prose


def test_prose_numbers_of_cost_and_speed(prose: str) -> None:
    model, bandwidth = MODELS["llama-3-8b"], GPUS["h100-sxm"].bandwidth

    def bound(bits: int, group_size: int | None) -> float:
        return bandwidth / weight_bytes(model.n_params, bits, group_size)

    assert f'"4 bits" are {bits_per_weight(4, 32)}.' in prose
    assert f"`Q8_0` takes {bits_per_weight(8, 32)}" in prose
    assert (
        f"Groups of 128 make 4 bits {bits_per_weight(4, 128)}, groups of 32 make them {bits_per_weight(4, 32)}" in prose
    )
    assert f"the bound is {bound(4, 128):.0f} tokens per second instead of {bound(4, None):.0f}" in prose
    assert f"which is {bound(4, 128) / bound(16, None):.2f} times" in prose
    assert f"With a scale per 32 it is {bound(4, 32) / bound(16, None):.2f} times" in prose
    gigabytes = [weight_bytes(model.n_params, bits, None) / 1e9 for bits in (16, 4)]
    assert "from {:.0f} GB to {:.0f} GB".format(*gigabytes) in prose
    whole, small = (Deployment(model, GPUS["h100-sxm"], bits, group) for bits, group in ((16, None), (4, 128)))
    gains = [whole.step(batch, 2048).seconds / small.step(batch, 2048).seconds for batch in (1, 64)]
    assert f"{gains[0]:.2f} times as fast at batch 1, and {gains[1]:.2f} times at batch 64" in prose


def test_prose_numbers_of_the_64_channels(prose: str) -> None:
    channels = np.geomspace(0.01, 1, 64)[:, None] * np.random.default_rng(0).standard_normal((64, 512))
    for_all = dequantize_per_tensor(*quantize_per_tensor(channels))
    per_channel = dequantize_groupwise(*quantize_groupwise(channels, None), None)
    smallest = [relative_error(channels[:1], restored[:1]) for restored in (for_all, per_channel)]
    assert f"its error is {100 * smallest[0]:.0f}%. With a scale of its own it is {100 * smallest[1]:.1f}%" in prose
    assert f"loses only {100 * relative_error(channels, for_all):.1f}%" in prose
    assert 0.68 <= smallest[0] <= 0.85
    assert 0.005 <= smallest[1] <= 0.009
    assert f'text: "{100 * smallest[1]:.1f}%"' in (QUIZZES / "04a_number_formats.yml").read_text("utf-8")


def test_prose_numbers_of_the_prediction(run: Lesson, prose: str) -> None:
    code = "\n".join(cell.source for cell in run.code)
    assert f"For groups of 32 a bell curve gives {100 * expected_error(32, 4):.1f}%" in code
    assert f"{4 + 16 * 5 / 576:.3f} bits at groups of 128, not {bits_per_weight(4, 128)}" in prose


def test_prose_numbers_of_the_formats(prose: str) -> None:
    sizes = [value for value in float_values(2, 1) if value >= 0]
    assert "it holds 0, 0.5, 1, 1.5, 2, 3, 4 and 6, with either sign" in prose
    assert sizes == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert f"Both 4-bit formats have {2 * len(sizes) - 1} values" in prose
    assert (sizes[-1] - sizes[-2]) / sizes[-1] == pytest.approx(1 / 3)
    assert f"for 32 weights: {4 + 8 / 32:.2f} bits per weight" in prose  # MXFP4: a scale of 8 bits
    assert f"for 16 weights: {4 + 8 / 16:.1f} bits" in prose  # NVFP4: a scale of 8 bits


def test_prose_numbers_of_integers_beside_fp4(prose: str) -> None:
    """Normal weights drawn here and put on the nearest value of each format."""
    weights = np.random.default_rng(0).standard_normal(2**20)

    def error(values: list[float], group_size: int) -> float:
        grid, groups = np.array(values), weights.reshape(-1, group_size)
        scale = np.abs(groups).max(axis=1, keepdims=True) / grid.max()
        nearest = grid[np.searchsorted((grid[1:] + grid[:-1]) / 2, groups / scale)]
        return 100 * relative_error(groups, nearest * scale)

    fp4, int4 = float_values(2, 1), [float(n) for n in range(-7, 8)]
    assert "in groups of 128 the error is 10.9% and not 11.7%" in prose
    assert [error(fp4, 128), error(int4, 128)] == pytest.approx([10.9, 11.7], abs=0.05)
    assert "the equal steps of integers are better, 9.7% and not 10.1%" in prose
    assert [error(int4, 32), error(fp4, 32)] == pytest.approx([9.7, 10.1], abs=0.05)


# --- the lesson run from clean


@pytest.mark.model
def test_one_group_with_an_outlier_gives_the_reference_values(run: Lesson) -> None:
    shown = run.text("one-group-run")
    assert "[2, -8, 5, 1, 127]" in shown
    assert "[0.126, -0.504, 0.315, 0.063, 8.0]" in shown
    assert "[30, -127, 84, 18]" in run.text("no-outlier-run")
    errors = re.findall(r"groups of (\d):  mean error: (\S+)", run.text("groups-run"))
    assert errors == [("5", "0.00639"), ("4", "0.00069"), ("2", "0.00041"), ("1", "0.00000")]


@pytest.mark.model
def test_bits_and_bounds_count_the_scales(run: Lesson) -> None:
    assert run.row("bits-run", "128") == ["8.125", "4.125"]
    assert run.row("speed-run", "16 bits") == ["16.06", "4.794", "209"]
    assert run.row("speed-run", "8 bits, no scales")[-1] == "417"
    assert run.row("speed-run", "4 bits, no scales")[-1] == "834"
    assert run.row("speed-run", "4 bits, groups of 128")[-1] == "809"


@pytest.mark.model
def test_the_file_tells_how_it_stores_its_tensors(run: Lesson) -> None:
    assert run.row("file-run", "norm")[0] == "F32"
    assert run.row("file-run", "embedding")[:2] == ["Q8_0", "8.5"]
    linear = run.row("file-run", "linear")
    assert linear[:2] == ["Q4_1", "5.0"]
    assert int(linear[2].split(" to ")[1]) == 16  # never more than 4 bits can tell apart


@pytest.mark.model
def test_rounding_again_on_the_same_grid_looks_lossless_and_on_its_neighbours_does_not(run: Lesson) -> None:
    assert run.row("trap-table", "32") == ["0.000%", "0.000%"]
    for neighbour in ("16", "64"):
        assert all(float(error.rstrip("%")) > 0.2 for error in run.row("trap-table", neighbour))


@pytest.mark.model
def test_the_measured_error_grows_with_the_group_and_outlier_columns_explain_the_gap(run: Lesson, prose: str) -> None:
    errors = {size: [float(cell.rstrip("%")) for cell in run.row("gap-run", str(size))] for size in (8, 32, 128, 512)}
    assert [errors[size][0] for size in (8, 32, 128, 512)] == sorted(errors[size][0] for size in errors)
    for measured, without_outliers, expected in errors.values():
        assert measured > expected
        assert without_outliers == pytest.approx(expected, abs=0.5)
    assert f"falls from {errors[512][0]:.0f}% to {errors[32][0]:.0f}%" in prose
    assert f"That costs {bits_per_weight(4, 32) - (4 + 16 * 2 / 576):.2f} bits per weight" in prose


@pytest.mark.model
def test_figures_are_drawn_and_the_slider_leaves_a_figure_for_pages_without_a_kernel(run: Lesson, prose: str) -> None:
    assert "image/png" in run.data("toy-plot")[0]
    assert "image/png" in run.data("measure-plot")[0]
    (slider,) = run.data("slider-run")
    rows = re.findall(r"<tr.*?</tr>", slider["text/html"])
    cells = [re.findall(r">([^<>]+)</td>", row) for row in rows[1:]]
    assert [row[0] for row in cells] == ["8", "16", "32", "64", "128", "256", "512"]
    assert cells[-1][4] + " of all weights become 0" in prose
