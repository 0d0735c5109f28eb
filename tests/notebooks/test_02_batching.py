"""Lesson 2: its prose agrees with `reference_impl`, and what it measures holds on a slow and busy machine too."""

import math
import re
from collections.abc import Callable

import pytest
from lesson_run import Lesson

from interactives.lesson_tables import quiet_value
from reference_impl.bounds.arithmetic import crossing_context
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

LLAMA, H100 = MODELS["llama-3-8b"], GPUS["h100-sxm"]
PAPER = Deployment(LLAMA, H100)


@pytest.fixture(scope="module")
def it(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("02_batching")


# --- the numbers in the prose


def test_prose_numbers_of_the_batch_table(it: Lesson) -> None:
    one, many = PAPER.step(1, 2048), PAPER.step(64, 2048)
    assert f"{PAPER.kv_bytes_per_token:,} bytes per token" in it.prose
    assert f"gives {one.tokens_per_second:.1f} tokens per second on an H100" in it.prose
    assert f"A batch of 64 delivers {many.tokens_per_second / one.tokens_per_second:.0f} times the tokens" in it.prose
    assert round(many.seconds / one.seconds) == 2  # "each user waits twice as long"
    caches = 64 * 2048 * PAPER.kv_bytes_per_token
    assert f"reads {caches / 1e9:.0f} GB of caches beside {PAPER.weight_bytes / 1e9:.0f} GB of weights" in it.prose
    without_caches = 64 * H100.bandwidth / PAPER.weight_bytes
    assert f"would say {without_caches:,.0f} tokens per second" in it.prose
    assert without_caches > 2 * many.tokens_per_second


def test_prose_numbers_of_the_crossing_that_never_comes(it: Lesson) -> None:
    assert PAPER.crossing_batch(2048) is None
    per_byte = 2 * LLAMA.n_params / (2048 * PAPER.kv_bytes_per_token)
    assert f"and {2048 * PAPER.kv_bytes_per_token / 1e6:.0f} MB of cache, or {per_byte:.1f} FLOP per byte" in it.prose
    assert f"({PAPER.intensity(10**9, 2048):.1f} with the FLOPs of attention)" in it.prose
    assert f"The ridge is {H100.ridge:.1f} FLOP per byte" in it.prose
    full = PAPER.max_sequences(2048)
    step = PAPER.step(full, 2048)
    assert f"{full} sequences fill the 80 GB" in it.prose
    assert f"The linear layers cross the ridge at batch {math.ceil(H100.ridge)}" in it.prose
    assert 0.18 < step.linear.seconds / step.seconds < 0.22  # "take a fifth of that time"
    assert f"takes {1000 * step.seconds:.1f} ms and gives {step.tokens_per_second:,.0f} tokens per second" in it.prose
    assert f"from batch {PAPER.crossing_batch(256)} on, and memory holds more than that" in it.prose
    assert PAPER.crossing_batch(256) < PAPER.max_sequences(256)
    assert PAPER.crossing_batch(384) > PAPER.max_sequences(384)
    assert f"From {PAPER.crossing_context():.0f} tokens on there is no crossing" in it.prose
    code = "\n".join(cell.source for cell in it.code)
    without = crossing_context(LLAMA.n_params, PAPER.kv_bytes_per_token, H100.ridge)
    assert f"reach the ridge: {without:.0f} tokens, or {PAPER.crossing_context():.0f} with" in code


def test_prose_numbers_of_the_prefill_that_shares_the_gpu(it: Lesson) -> None:
    prefill, decode = PAPER.prefill_seconds(2048), 500 * PAPER.step(64, 2048).seconds / 64
    assert f"prefill takes {prefill / (prefill + decode):.0%} of the GPU's time" in it.prose


def test_prose_numbers_of_the_promise(it: Lesson) -> None:
    assert PAPER.step(64, 2048).seconds < 0.010 < PAPER.step(65, 2048).seconds
    full, kept = PAPER.step(238, 2048), PAPER.step(64, 2048)
    more = full.tokens_per_second / kept.tokens_per_second - 1
    assert f"The next {more:.0%} of throughput would cost {full.seconds / kept.seconds:.1f} times the wait" in it.prose


def test_prose_numbers_of_a_long_prompt(it: Lesson) -> None:
    code = "\n".join(cell.source for cell in it.code)
    without, whole = (1000 * PAPER.prefill_seconds(8000, attention=attention) for attention in (False, True))
    assert f"2PT alone takes {without:.1f} ms, with attention {whole:.1f} ms" in code
    first, last = PAPER.prefill_seconds(512), PAPER.prefill_seconds(8000) - PAPER.prefill_seconds(8000 - 512)
    assert f"costs {1000 * first:.0f} ms at the beginning of the prompt and {1000 * last:.0f} ms at its end" in it.prose


# --- the lesson run from clean


@pytest.mark.model
def test_the_batch_table_has_the_reference_values(it: Lesson) -> None:
    assert it.row("table-run", "1  ")[1:3] == ["4.874", "205.2"]
    assert it.row("table-run", "8  ")[1:3] == ["5.435", "1,471.9"]
    assert it.row("table-run", "32  ")[1:3] == ["7.358", "4,348.8"]
    assert it.row("table-run", "64  ")[1:3] == ["9.923", "6,450.0"]


@pytest.mark.model
def test_a_batch_of_16_gives_more_tokens_per_second_than_one_sequence(it: Lesson) -> None:
    one, many = (float(it.row("measure-plot", f"{batch}  ")[-1]) for batch in (1, 16))
    assert many > 1.5 * one
    assert "image/png" in it.data("measure-plot")[0]


@pytest.mark.model
def test_the_linear_layers_cross_the_ridge_at_296_and_the_step_as_a_whole_never(it: Lesson) -> None:
    assert it.row("never-run", "238") == ["4.8", "memory-bound", "19.1", "51.0"]
    assert it.row("never-run", "296")[1] == "compute-bound"
    assert it.row("never-run", "10,000")[-1] == "63.5"  # FLOP per byte; the ridge is 295.4
    assert it.number("never-run", r"fits in 80 GB: +(\d+)") == 238
    assert it.row("context-run", "2,048")[0] == "–"
    assert it.row("context-run", "256")[0] == "755"


@pytest.mark.model
def test_answers_are_the_same_alone_and_in_a_batch(it: Lesson) -> None:
    assert "same answers:     True" in it.text("real-table")
    assert it.number("real-table", r"([\d.]+) times as fast") > 1


@pytest.mark.model
def test_static_and_continuous_batching_have_the_reference_values_on_paper_and_in_the_engine(it: Lesson) -> None:
    assert it.row("paper-run", "static") == ["13", "61.5%", "10.50"]
    assert it.row("paper-run", "continuous") == ["9", "88.9%", "5.67"]
    assert it.row("engine-table", "static")[:2] == ["161", "161"]
    assert it.row("engine-table", "continuous")[:2] == ["110", "110"]


@pytest.mark.model
def test_a_long_prompt_is_measured_whole_and_in_chunks_beside_a_quiet_machine(it: Lesson) -> None:
    shown = it.text("chunked-table")
    for served in ("in one pass", "in chunks of 32"):
        pauses = [float(pause) for pause in re.findall(rf"{served} +([\d.,]+) ", shown)]
        assert len(pauses) == 2  # here, and where it was quiet
        assert min(pauses) > 0
    whole, chunked = (quiet_value("requests", "pause_ms", served=way) for way in ("in one pass", "in chunks of 32"))
    assert chunked < whole


@pytest.mark.model
def test_the_figures_leave_something_for_a_page_without_a_kernel(it: Lesson) -> None:
    for cell, name in [("explorer", "batching"), ("timeline", "timeline")]:
        (shown,) = it.data(cell)
        assert f'data-interactive="{name}"' in shown["text/html"]
