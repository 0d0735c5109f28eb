"""Lesson 5: its prose agrees with `reference_impl`, and drafts change no answer."""

from collections.abc import Callable

import pytest
from lesson_run import Lesson

from reference_impl.benchmarks.harness.committed import quiet_rows
from reference_impl.benchmarks.quality.table import committed_rows
from reference_impl.bounds.arithmetic import best_draft_length, expected_tokens, speculative_speedup
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS


@pytest.fixture(scope="module")
def it(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("05_speculative_decoding")


# --- the numbers in the prose


def test_prose_numbers_of_the_formula(it: Lesson) -> None:
    code = "\n".join(cell.source for cell in it.code)
    assert f"1 + 0.8 + 0.64 + 0.512 + 0.4096 = {expected_tokens(0.8, 4):.4f}" in code
    assert f"Four guesses at 0.6 bring {expected_tokens(0.6, 4):.1f} tokens" in it.prose
    assert f"1/(1 - 0.6) = {1 / (1 - 0.6):.1f}" in it.prose
    assert f"{expected_tokens(0.8, 4):.2f} for $\\alpha = 0.8$ and $k = 4$" in it.prose
    assert expected_tokens(1, 4) == 5


def test_prose_numbers_of_quantized_weights_in_a_batch(it: Lesson) -> None:
    formats = [(4, 128), (16, None)]
    few, many = (Deployment(MODELS["llama-3-8b"], GPUS["h100-sxm"], *form).compute_bound_batch for form in formats)
    assert f"compute-bound from {few} rows on and not from {many}" in it.prose


def test_prose_numbers_of_the_8_bit_draft_on_a_quiet_machine(it: Lesson) -> None:
    steps = {row["weights"]: row["milliseconds"] for row in quiet_rows("quantized", batch=1, engine="this engine")}
    (speed,) = quiet_rows("speculation_speedup", target="smollm2-135m", kind="code")
    cost, check = steps["int8"] / steps["fp32"], speed["verify_cost"]
    alpha = committed_rows("smollm2-135m")["int8 g128 rounding"]["agreement"] / 100
    assert f"a step in 8 bits took {cost:.2f} of a step in 32 bits" in it.prose
    assert f"the {100 * alpha:.0f}% of part 2 of lesson 4, four guesses and a check of {check:.2f} steps" in it.prose
    assert f"the formula gives {expected_tokens(alpha, 4) / (4 * cost + check):.1f} times" in it.prose


def test_prose_numbers_of_the_best_length(it: Lesson) -> None:
    code = "\n".join(cell.source for cell in it.code)
    k = best_draft_length(0.8, 0.1)
    tokens, time, gain = expected_tokens(0.8, k), 1 + 0.1 * k, speculative_speedup(0.8, k, 0.1)
    assert f"k = {k}: {tokens:.2f} tokens in {time:.1f} passes' time, {gain:.2f} times as fast" in code
    assert speculative_speedup(0.5, 12, 0.1) < 1  # "slower than no guessing at all"
    assert speculative_speedup(0.8, k - 2, 0.1) > 0.95 * gain  # "off by one or two costs a few percent"
    assert speculative_speedup(0.5, 0, 0.1) < 0.8 * speculative_speedup(0.5, 2, 0.1)  # and only "at high acceptance"


def test_prose_numbers_of_batches_and_of_a_smaller_model(it: Lesson) -> None:
    plan = Deployment(MODELS["llama-3-8b"], GPUS["h100-sxm"])
    plain, checking = plan.step(238, 2048), plan.step(238, 2048, new_tokens=5)
    code = "\n".join(cell.source for cell in it.code)
    linear = f"take {1000 * checking.linear.seconds:.1f} ms in place of {1000 * plain.linear.seconds:.1f}"
    assert linear in code
    assert f"Reading the caches takes {1000 * plain.attention.seconds:.1f} ms" in code
    long, short = plan.verify_cost(238, 2048), plan.verify_cost(238, 256)
    assert f"{1000 * checking.seconds:.1f} ms over {1000 * plain.seconds:.1f} ms is {long(4):.2f}" in code
    assert f"the check costs {long(4):.2f} steps" in it.prose
    assert best_draft_length(0.8, 0.1, long) == 3
    speedup = speculative_speedup(0.8, 3, 0.1, long(3))
    assert f"the best $k$ falls to 3 and the speed-up to {speedup:.2f}" in it.prose
    assert f"the check costs {short(4):.2f} steps, and the best $k$ is 1" in it.prose
    assert best_draft_length(0.8, 0.1, short, max_k=16) == 1
    assert f"compute-bound in its linear layers from {plan.compute_bound_batch} rows on" in it.prose
    small, big = MODELS["llama-3.2-1b"].n_params, MODELS["llama-3-8b"].n_params
    shown = f"a draft of {small / 1e9:.2f} billion parameters costs {small / big:.2f} of a target of {big / 1e9:.2f}"
    assert shown in it.prose


def test_prose_numbers_measured_on_a_quiet_machine(it: Lesson) -> None:
    by_batch = {row["batch"]: row for row in quiet_rows("speculation_batch", target="smollm2-135m")}
    assert f"At batch 1 speculation made decoding {by_batch[1]['measured']:.2f} times as fast there" in it.prose
    assert f"At batch 8 it made it slower, {by_batch[8]['measured']:.2f} times" in it.prose
    assert 2.7 < by_batch[8]["verify_cost"] < 3  # "nearly three steps"
    gains = [row["measured"] for row in quiet_rows("speculation_speedup", target="smollm2-135m")]
    assert f"made SmolLM2 {min(gains):.1f} to {max(gains):.1f} times as fast" in it.prose
    code = "\n".join(cell.source for cell in it.code)
    assert f"were {min(gains):.1f} to {max(gains):.1f} times as fast" in code
    pair = quiet_rows("speculation_speedup", draft="course-draft")
    assert all(row["measured"] < 1 for row in pair)  # "slower ... on every kind of text"
    assert all(1.9 < row["verify_cost"] < 2.1 for row in pair)  # "about two steps"


# --- the lesson run from clean


@pytest.mark.model
def test_checking_five_tokens_costs_less_than_writing_five(it: Lesson) -> None:
    assert float(it.row("check-table", "1  ")[0]) == 1
    here, on_paper = it.row("check-table", "5  ")
    assert float(here) < 5
    assert float(on_paper) == 1


@pytest.mark.model
def test_a_round_takes_the_right_prefix_and_one_token_of_the_target(it: Lesson) -> None:
    assert it.text("round-run").splitlines() == [
        "round 1: +4 over the green fields",
        "round 2: +3 where the sheep",
        "round 3: +1 may",
        "8 tokens in 3 target passes (2.67 per pass)",
    ]


@pytest.mark.model
def test_tokens_a_pass_have_the_reference_values_up_to_an_acceptance_of_one(it: Lesson) -> None:
    rows = [line.split() for line in it.text("expected-run").splitlines()[1:]]
    assert rows == [["0.0", "1.0000"], ["0.6", "2.3056"], ["0.8", "3.3616"], ["0.9", "4.0951"], ["1.0", "5.0000"]]


@pytest.mark.model
def test_the_best_draft_lengths_have_the_reference_values(it: Lesson) -> None:
    rows = [line.split()[:3] for line in it.text("length-run").splitlines()[1:]]
    assert rows == [["0.02", "11", "3.82"], ["0.05", "8", "3.09"], ["0.1", "6", "2.47"], ["0.2", "4", "1.87"]]
    assert "image/png" in it.data("length-plot")[0]


@pytest.mark.model
def test_checking_is_free_for_one_user_and_costs_most_in_a_large_batch_at_short_contexts(it: Lesson) -> None:
    rows = [line.split() for line in it.text("batch-run").splitlines()[1:]]
    cost = {(context, batch): (float(cost), int(k)) for context, batch, _, _, cost, k, _ in rows}
    assert rows[2] == ["2,048", "238", "19.3", "19.1", "1.61", "3", "1.69"]
    assert cost["2,048", "1"] == cost["256", "1"] == (1, 6)
    assert cost["2,048", "238"] == (1.61, 3)
    assert cost["256", "238"] == (3.02, 1)


@pytest.mark.model
def test_the_exact_rule_gives_p_and_drawing_from_p_does_not(it: Lesson) -> None:
    assert it.row("exact-table", "the rule gives") == ["0.500", "0.300", "0.200"]
    assert it.row("exact-table", "drawing from p") == ["0.350", "0.390", "0.260"]
    assert it.number("draws-run", r"came out \['([\d.]+)'") == pytest.approx(0.5, abs=0.032)  # four standard errors


@pytest.mark.model
def test_drafts_change_no_token_and_save_passes(it: Lesson) -> None:
    assert "same tokens: True" in it.text("speed-table")
    assert it.number("speed-table", r"([\d.]+) tokens per pass") > 1
    for kind in ("code", "prose", "structured"):
        alpha, measured, formula = map(float, it.row("kinds-table", kind))
        assert 0 <= alpha <= 1
        assert 1 <= measured <= 5
        assert 1 <= formula <= 5


@pytest.mark.model
def test_the_target_in_8_bits_is_a_draft_that_nearly_always_agrees(it: Lesson) -> None:
    assert it.number("model-table", r"acceptance +([\d.]+)%") > 80
    assert it.number("model-table", r"tokens per pass +([\d.]+)") > 3
    assert it.number("model-table", r"a draft pass costs +([\d.]+)") > 0


@pytest.mark.model
def test_the_figures_leave_something_for_a_page_without_a_kernel(it: Lesson) -> None:
    for cell, name in [("explorer", "draft"), ("round-widget", "speculative")]:
        (shown,) = it.data(cell)
        assert f'data-interactive="{name}"' in shown["text/html"]
