"""Lesson 1: its prose agrees with `reference_impl`, and what it measures holds on a slow and busy machine too."""

from collections.abc import Callable

import pytest
from lesson_run import Lesson

from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

LLAMA, H100 = MODELS["llama-3-8b"], GPUS["h100-sxm"]
PAPER = Deployment(LLAMA, H100)


@pytest.fixture(scope="module")
def it(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("01_prefill_and_decode")


# --- the numbers in the prose


def test_prose_numbers_of_the_decode_bound(it: Lesson) -> None:
    step = PAPER.step(1, 0)
    assert f"{LLAMA.n_params:,} parameters, 2 bytes each, and 3.35 TB/s" in it.prose
    assert f"and {step.tokens_per_second:.1f} is the bound of *this* model" in it.prose
    assert f"With a round 8 billion parameters the bound is {H100.bandwidth / 16e9:.1f}" in it.prose
    bare = PAPER.step(1, 0, input_embedding=False)
    assert f"{1000 * bare.seconds:.3f} ms, or {bare.tokens_per_second:.1f} tokens per second" in it.prose
    code = "\n".join(cell.source for cell in it.code)
    assert f"{PAPER.weight_bytes / 1e9:.2f} GB at 3.35 TB/s take {1000 * step.seconds:.3f} ms" in code
    assert f"so {step.tokens_per_second:.1f} a second" in code


def test_prose_numbers_of_prefill(it: Lesson) -> None:
    without, whole = (PAPER.prefill_seconds(2000, attention=attention) for attention in (False, True))
    assert f"which adds {whole / without - 1:.1%} here" in it.prose
    per_token, step = without / 2000, PAPER.step(1, 0).seconds
    assert f"are {1e6 * per_token:.0f} µs each in prefill; a token costs {1e6 * step:,.0f} µs in decode" in it.prose
    assert f"is {step / per_token:.0f} times cheaper" in it.prose
    code = "\n".join(cell.source for cell in it.code)
    assert f"3.21e13 FLOPs, at half of 989.5e12 a second: {1000 * without:.1f} ms" in code
    assert f"{2 * LLAMA.n_params * 2000:.3g}" == "3.21e+13"


def test_prose_numbers_of_the_roofline(it: Lesson) -> None:
    assert f"make {H100.ridge:.1f} FLOP per byte" in it.prose
    assert f"{100 - 100 / H100.ridge:.2f}% of the arithmetic stands idle" in it.prose
    assert f"{LLAMA.n_layers} layers and {LLAMA.n_params / MODELS['smollm2-135m'].n_params:.0f} times" in it.prose


def test_prose_numbers_of_the_context_and_of_a_long_prompt(it: Lesson) -> None:
    with_cache, without = (1000 * PAPER.step(1, context).seconds for context in (2048, 0))
    assert f"so it is {with_cache:.3f} ms and not {without:.3f}" in it.prose
    decode = sum(PAPER.step(1, 50_000 + n).seconds for n in range(1, 10))  # the first of ten comes with the prefill
    assert f"takes {PAPER.prefill_seconds(50_000):.2f} s of prefill" in it.prose
    assert f"an answer of ten tokens {decode:.2f} s of decode" in it.prose


# --- the lesson run from clean


@pytest.mark.model
def test_the_model_answers_and_prefill_costs_far_less_than_as_many_decode_steps(it: Lesson) -> None:
    assert "Paris" in it.text("watch-table")
    n_tokens = it.number("watch-table", r"first pass, (\d+) tokens")
    assert 1 < it.number("watch-table", r"ratio +([\d.]+)") < n_tokens / 2


@pytest.mark.model
def test_the_table_of_bounds_has_the_reference_values(it: Lesson) -> None:
    assert it.row("bound-run", "16 bits") == ["16.06", "4.794", "208.6"]
    assert it.row("bound-run", "8 bits")[-1] == "417.2"
    assert it.row("bound-run", "4 bits")[-1] == "834.3"


@pytest.mark.model
def test_an_exact_half_is_printed_half_to_even(it: Lesson) -> None:
    assert it.row("napkin-run", "8B, 16 bits") == ["62.5", "62"]
    assert it.row("napkin-run", "8B, 4 bits")[0] == "250.0"
    assert it.row("napkin-run", "70B, 16 bits")[-1] == "7"


@pytest.mark.model
def test_the_machine_is_measured_and_its_bound_follows(it: Lesson) -> None:
    bandwidth = it.number("probe-run", r"reads +([\d.,]+) GB/s")
    megabytes = it.number("probe-run", r"SmolLM2 +([\d.,]+) MB")
    assert megabytes in (538.1, 269.0)  # float32 on a CPU, bfloat16 on a GPU
    assert it.number("probe-run", r"bound +([\d.]+) ms") == pytest.approx(megabytes / bandwidth, rel=0.05)
    assert 0.05 < it.number("measure-table", r"so (\d+)% of the bound") / 100 < 5  # above 1: it was busy while probed


@pytest.mark.model
def test_calling_the_layers_costs_a_part_of_a_step(it: Lesson) -> None:
    assert it.number("gap-run", r"thin model +([\d.]+)%") < 1
    assert 0 < it.number("gap-run", r"its step +([\d.]+) ms") < it.number("gap-run", r"measured +([\d.]+) ms")


@pytest.mark.model
def test_paper_values_of_prefill_and_of_a_whole_answer(it: Lesson) -> None:
    assert it.number("prefill-run", r"2 P T +([\d.]+) ms") == 64.9
    assert it.number("prefill-run", r"([\d.]+)% more") == 3.3
    assert it.number("h100-run", r"on paper: ([\d.]+) ms") == 4.874
    assert it.number("whole-run", r"share +([\d.]+)%") == 97.3


@pytest.mark.model
def test_a_token_is_cheaper_in_a_larger_pass(it: Lesson) -> None:
    one = float(it.row("passes-plot", "1  ")[-1])
    many = float(it.row("passes-plot", "128  ")[-1])
    assert many < one / 2
    assert "image/png" in it.data("passes-plot")[0]


@pytest.mark.model
def test_a_step_without_the_cache_takes_several_times_as_long(it: Lesson) -> None:
    assert it.number("cache-table", r"([\d.]+) times as long") > 2
    assert it.number("cache-table", r"on paper: (\d+) times") == 14


@pytest.mark.model
def test_the_roofline_leaves_something_for_a_page_without_a_kernel(it: Lesson) -> None:
    (shown,) = it.data("roofline-widget")
    assert 'data-interactive="roofline"' in shown["text/html"]
