"""Problem set 1: its numbers are the course's, its tests pass the course's own functions, its samples earn their due.

What its tests catch is in test_ps_bank.py.
"""

from __future__ import annotations

import pytest
import released
from in_process import assignment

from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import GPUS

NAME = "ps1_prefill_decode"
MODEL, GPU = MODELS["llama-3-8b"], GPUS["h100-sxm"]


def test_the_notebook_is_ready_for_release() -> None:
    released.check_notebook(NAME, points=60)
    released.check_hints(NAME)
    released.check_bundle(NAME)


def test_the_numbers_of_the_text_are_those_of_the_course() -> None:
    said = released.text(NAME)
    weights = 2 * MODEL.n_params
    prefill = arithmetic.prefill_flops(MODEL.n_params, 2000) / (0.5 * GPU.peak_flops)
    for number in (
        f"{MODEL.n_params:,}",
        f"{GPU.peak_flops / 1e12:g} · 10¹² FLOP/s",
        f"{GPU.bandwidth / 1e12:g} · 10¹² bytes/s",
        f"{GPU.memory_bytes / 1e9:g} · 10⁹ bytes",
        f"{weights:,} bytes",
        f"= {prefill:.4f} s",
        f"**{1000 * prefill:.0f} ms**",
        f"{1000 * weights / GPU.bandwidth:.2f} ms",
        f"**{GPU.bandwidth / weights:.1f} tokens per second**",
        f"{1e6 * 2 * MODEL.n_params / GPU.peak_flops:.0f} µs",
        f"{MODEL.kv_bytes_per_token():,} bytes",
    ):
        assert number in said, number


@pytest.mark.parametrize(
    ("cell", "function"),
    [
        ("prefill", "prefill_flops"),
        ("first-token", "time_to_first_token"),
        ("decode-rate", "decode_tokens_per_second"),
        ("kv-size", "kv_bytes_per_token"),
        ("fitting", "max_sequences"),
    ],
)
def test_the_courses_own_functions_pass(cell: str, function: str) -> None:
    assert assignment(NAME).lost({cell: f"from reference_impl.bounds.arithmetic import {function}"}) == {}


def test_the_sample_submissions_lose_what_they_should() -> None:
    known = assignment(NAME)
    assert known.lost(released.answers(NAME, "right")) == {}
    assert set(known.lost(released.answers(NAME, "two-mistakes"))) == {
        "kv-bytes-of-known-models",
        "kv-bytes-use-every-argument",
        "kv-bytes-of-other-precisions",
        "attend-new-cache",
        "attend-equals-full-recomputation",
    }
    lost = known.lost(released.answers(NAME, "raises"))
    assert set(lost) == {
        "sequences-beside-the-weights",
        "sequences-whole-ones-only",
        "sequences-none-left",
        "sequences-weights-do-not-fit",
    }
