"""Lesson 4, part 2, runs from clean, shows what it promises, and its prose agrees with `reference_impl`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lesson_run import Lesson

from reference_impl.benchmarks.quality.table import committed_rows, pairs_as_predicted, predicted_order
from reference_impl.bounds.arithmetic import bits_per_weight


@pytest.fixture(scope="module")
def run(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("04b_quantization_methods")


@pytest.fixture(scope="module")
def prose(run: Lesson) -> str:
    return run.prose


def test_it_leads_to_its_problem_set(prose: str) -> None:
    assert "ps3_quantization" in prose


# --- the numbers in the prose


def test_prose_numbers_of_the_judged_model(prose: str) -> None:
    smol = committed_rows("smollm2-135m")
    held, pairs = pairs_as_predicted(list(smol.values()), predicted_order())
    assert f"{held} of {pairs} pairs stand as predicted" in prose
    grid_32, grid_128, grid_3 = (
        [smol[f"{grid} {method}"]["kl"] for method in ("rounding", "gptq", "awq")]
        for grid in ("int4 g32", "int4 g128", "int3 g128")
    )
    assert f"GPTQ in groups of 128 ({grid_128[1]:.2f}) and AWQ ({grid_128[2]:.2f}) beat rounding" in prose
    assert f"in groups of 32 ({grid_32[0]:.2f})" in prose
    assert f"GPTQ cuts the KL of rounding from {grid_128[0]:.2f} to {grid_128[1]:.2f}" in prose
    assert f"at 3 bits from {grid_3[0]:.1f} to {grid_3[1]:.1f}" in prose
    worst = [smol[f"int3 g128 {method}"]["perplexity_code"] for method in ("rounding", "gptq")]
    assert f"a perplexity of {worst[0]:.0f} on code after rounding and {worst[1]:.0f} after GPTQ" in prose
    whole, damaged = smol["float"], smol["int4 g32 rounding"]
    assert f"perplexity on code rises from {whole['perplexity_code']:.1f} to {damaged['perplexity_code']:.1f}" in prose
    assert f"copying stays at {damaged['copying']:.0f}% of {whole['copying']:.0f}%" in prose
    assert f"sums fall from {whole['arithmetic']:.0f}% to {damaged['arithmetic']:.0f}%" in prose
    names = ("int8 g128", "int4 g32", "int4 g128")
    gains = [smol[f"{name} rounding"]["tokens_per_second"] / whole["tokens_per_second"] for name in names]
    assert f"8 bits decode {gains[0]:.1f} times as fast as float, 4 bits in groups of 32 {gains[1]:.1f} times" in prose
    assert f"in groups of 128 {gains[2]:.1f} times" in prose
    assert smol["Q4_1, its own grid"]["kl"] < 1e-9
    assert f"8 bits change {100 - smol['int8 g128 rounding']['agreement']:.0f}% of the choices" in prose


def test_prose_numbers_of_the_robust_model(prose: str) -> None:
    target = committed_rows("course-target")
    whole, damaged = target["float"], target["int4 g128 rounding"]
    assert f"on code from {whole['perplexity_code']:.1f} to {damaged['perplexity_code']:.1f}" in prose
    assert f"{100 - damaged['agreement']:.0f}% of its choices" in prose
    assert f"KL from {damaged['kl']:.3f} to {target['int4 g128 gptq']['kl']:.3f}" in prose


def test_prose_numbers_of_mixed_precision(prose: str) -> None:
    assert f"add {0.01 * (16 - bits_per_weight(3, 128)):.2f} bits per weight" in prose


# --- the lesson run from clean


def percent(cell: str) -> float:
    return float(cell.rstrip("%"))


@pytest.mark.model
def test_one_percent_of_the_columns_carries_much_of_the_error(run: Lesson, prose: str) -> None:
    labels = ("none", "1%, drawn at random", "1%, largest inputs", "5%, largest inputs")
    none, random, largest, five = (percent(run.row("salient-run", label)[0]) for label in labels)
    assert random > 0.95 * none
    assert five < largest < 0.6 * none
    assert "6 of 576 columns are 1%" in run.text("smol-run")
    assert "Keeping six of 576 columns takes away nearly half of the error" in prose


@pytest.mark.model
def test_the_two_rounding_rules_differ_on_halves(run: Lesson) -> None:
    assert run.row("ties-run", "half to even") == ["[127, 0, 2, 2, 0, -2]"]
    assert run.row("ties-run", "half away (Q8_0)") == ["[127, 1, 2, 3, -1, -3]"]


@pytest.mark.model
def test_gptq_moves_the_weights_further_and_brings_the_outputs_closer(run: Lesson, prose: str) -> None:
    rounding, gptq = ([percent(cell) for cell in run.row("gptq-run", method)] for method in ("rounding", "GPTQ"))
    assert gptq[0] > 1.2 * rounding[0]  # weights
    assert gptq[1] < 0.8 * rounding[1]  # outputs on the text that it was fitted to
    assert gptq[1] < gptq[2] < 0.85 * rounding[2]  # and on other text
    assert f"{gptq[0]}% off instead of {rounding[0]}%" in prose
    assert f"{gptq[1]}% off instead of {rounding[1]}%" in prose
    assert f"gains a little less: {gptq[2]}%" in prose


@pytest.mark.model
def test_awq_gains_where_some_inputs_are_large_and_hardly_elsewhere(run: Lesson, prose: str) -> None:
    errors = {
        ratio: [percent(cell) for cell in run.row("awq-table", f"ratio {ratio}")]
        for ratio in ("  0", "0.1", "0.2", "0.3", "0.4", "0.6", "0.8")
    }
    plain = errors["  0"]
    best = [min(column) for column in zip(*errors.values(), strict=True)]
    assert best[1] < 0.75 * plain[1]
    assert best[0] > 0.9 * plain[0]
    assert f"For SmolLM2 the error falls from {plain[1]}% to {best[1]}%" in prose
    assert f"it falls from {plain[0]}% to {best[0]}%" in prose
    largest = run.row("awq-table", "largest / median input")
    assert f"{largest[0]} times the median one, not {largest[1]} times" in prose


@pytest.mark.model
def test_the_committed_tables_are_shown_with_where_they_come_from(run: Lesson) -> None:
    for cell, model in (("table-run", "smollm2-135m"), ("target-run", "course-target")):
        for name in committed_rows(model):
            assert any(line.startswith(name) for line in run.text(cell).splitlines())
        assert "measured on " in run.text(cell)
    assert [line.split(". ")[1] for line in run.text("order-run").splitlines()] == predicted_order()
