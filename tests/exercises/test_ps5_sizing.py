"""Problem set 5: its numbers are the course's, its tests pass the course's own functions, its samples earn their due.

What its tests catch is in test_ps_bank.py.
"""

from __future__ import annotations

import math

import pytest
import released
from in_process import assignment

from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import GPUS

NAME = "ps5_sizing"
MODEL = MODELS["llama-3-70b"]
DOCTORS, CONTEXT = 24, 8192
PRICES = {"h100-sxm": 2.50, "h200": 3.80}


def test_the_notebook_is_ready_for_release() -> None:
    released.check_notebook(NAME, points=60, bonus=10)
    released.check_hints(NAME)
    released.check_bundle(NAME)


def test_the_numbers_of_the_text_are_those_of_the_course() -> None:
    said = released.text(NAME)
    h100, h200 = GPUS["h100-sxm"], GPUS["h200"]
    bf16, int4 = (arithmetic.weight_bytes(MODEL.n_params, *form) for form in [(16,), (4, 128)])
    for number in (
        f"{MODEL.n_params:,}",
        f"**{bf16 / 1e9:.1f} GB**",
        f"= {bf16 / h100.memory_bytes:.2f} GPUs",
        f"**{1000 * bf16 / 2 / h100.bandwidth:.1f} ms**",
        f"**{int4 / 1e9:.1f} GB**",
        f"{1000 * int4 / h100.bandwidth:.1f} ms",
        f"{MODEL.kv_bytes_per_token():,} bytes",
        f"| H100 | {h100.memory_bytes / 1e9:g} GB | {h100.bandwidth / 1e12:g} TB/s | {PRICES['h100-sxm']:.2f} |",
        f"| H200 | {h200.memory_bytes / 1e9:g} GB | {h200.bandwidth / 1e12:g} TB/s | {PRICES['h200']:.2f} |",
    ):
        assert number in said, number


def test_the_table_of_the_model_answer_is_computed_with_the_courses_functions() -> None:
    answer = next("".join(cell["source"]) for cell in released.cells(NAME) if cell["id"] == "the-numbers")
    caches = DOCTORS * CONTEXT * MODEL.kv_bytes_per_token()
    for bits, form, group_size in [(16, "bf16", None), (8, "8 bits", 128), (4, "4 bits", 128)]:
        weights = arithmetic.weight_bytes(MODEL.n_params, bits, group_size)
        for name, price in PRICES.items():
            gpu = GPUS[name]
            needed = arithmetic.gpus_needed(weights + caches, gpu.memory_bytes)
            number = next(n for n in (1, 2, 4, 8) if n >= needed)
            seconds = arithmetic.step_seconds(weights, caches, gpu.bandwidth, number)
            full = (weights + caches) / (number * gpu.memory_bytes)
            row = next(
                line for line in answer.splitlines() if line.startswith(f"| {form} |") and name[:4].upper() in line
            )
            assert f"| {weights / 1e9:.1f} | {(weights + caches) / 1e9:.1f} |" in row
            assert f"| {number} " in row
            assert f"| {100 * full:.0f} % |" in row
            assert any(f"| {1000 * seconds + d:.1f} ms |" in row for d in (-0.05, 0, 0.05)), row
            assert any(f"| {n} |" in row for n in (math.floor(1 / seconds), math.ceil(1 / seconds))), row
            assert row.endswith(f"| {number * price:.2f} |")


def test_the_turning_points_of_the_model_answer_hold() -> None:
    answer = next("".join(cell["source"]) for cell in released.cells(NAME) if cell["id"] == "the-recommendation")
    one = CONTEXT * MODEL.kv_bytes_per_token()
    for bits, users in [(8, "full at {} doctors"), (4, "which hold {}.")]:
        weights = arithmetic.weight_bytes(MODEL.n_params, bits, 128)
        assert users.format(arithmetic.max_sequences(160e9, weights, one / CONTEXT, CONTEXT)) in answer


@pytest.mark.parametrize(
    ("cell", "function"), [("weights", "weight_bytes"), ("gpus", "gpus_needed"), ("step", "step_seconds")]
)
def test_the_courses_own_functions_pass(cell: str, function: str) -> None:
    assert assignment(NAME).lost({cell: f"from reference_impl.bounds.arithmetic import {function}"}) == {}


def test_the_sample_submissions_lose_what_they_should() -> None:
    known = assignment(NAME)
    assert known.lost(released.answers(NAME, "right")) == {}
    assert set(known.lost(released.answers(NAME, "two-mistakes"))) == {
        "weights-scales-are-counted",
        "weights-of-other-formats",
        "weights-partial-group",
        "step-on-several-gpus",
        "step-is-in-seconds",
    }
    lost = known.lost(released.answers(NAME, "raises"))
    assert set(lost) == {"gpus-are-rounded-up", "gpus-that-fit-exactly", "gpus-of-other-sizes"}
