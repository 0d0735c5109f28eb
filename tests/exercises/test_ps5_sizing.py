"""Problem set 5: its numbers are the course's, its tests pass the course's own functions, its samples earn their due.

What its tests catch is in test_ps_bank.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import released
from in_process import assignment

from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS, Gpu

NAME = "ps5_sizing"
MODEL = MODELS["llama-3-70b"]
DOCTORS, CONTEXT, FILE = 24, 8192, 6000
TOKENS_PER_SECOND, FIRST_TOKEN = 40, 1.0  # the two promises
BANDWIDTH_REACHED, FLOPS_REACHED = 0.75, 0.5
GUESSES, LETTERS, FREE_TEXT = 4, 0.5, 0.2  # drafted tokens, and the share of them that is accepted
PRICES = {"h100-sxm": 2.50, "h200": 3.80}
FORMATS = [(16, "bf16", None), (8, "8 bits", 128), (4, "4 bits", 128)]
CACHES = DOCTORS * CONTEXT * MODEL.kv_bytes_per_token()


@dataclass(frozen=True)
class Option:
    """One row of the case's table: the fewest GPUs of a kind that hold weights and caches, by the course's bounds."""

    bits: int
    group_size: int | None
    gpu_name: str

    @property
    def gpu(self) -> Gpu:
        """What a program reaches of the GPU's data sheet."""
        whole = GPUS[self.gpu_name]
        reached = {"bandwidth": BANDWIDTH_REACHED * whole.bandwidth, "peak_flops": FLOPS_REACHED * whole.peak_flops}
        return replace(whole, **reached)

    @property
    def plan(self) -> Deployment:
        weights = arithmetic.weight_bytes(MODEL.n_params, self.bits, self.group_size)
        needed = arithmetic.gpus_needed(weights + CACHES, self.gpu.memory_bytes)
        number = next(n for n in (1, 2, 4, 8) if n >= needed)
        return Deployment(MODEL, self.gpu, self.bits, self.group_size, n_gpus=number)

    def seconds(self, rows_each: int = 1, doctors: int = DOCTORS) -> float:
        step = self.plan.step(doctors, CONTEXT, rows_each)
        return step.linear.seconds + step.attention.memory_seconds

    def speed(self, acceptance: float | None = None, doctors: int = DOCTORS) -> float:
        """Tokens per second of one doctor, without drafts or with them."""
        if acceptance is None:
            return 1 / self.seconds(doctors=doctors)
        return arithmetic.expected_tokens(acceptance, GUESSES) / self.seconds(GUESSES + 1, doctors)

    @property
    def first_token(self) -> float:
        return self.plan.prefill_seconds(FILE, utilization=1, attention=False)

    @property
    def price(self) -> float:
        return PRICES[self.gpu_name] * self.plan.n_gpus


OPTIONS = [Option(bits, group, gpu) for bits, _, group in FORMATS for gpu in PRICES]


def model_answer(cell: str) -> str:
    return next("".join(one["source"]) for one in released.cells(NAME) if one["id"] == cell)


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
        *(
            f"| {name} | {gpu.memory_bytes / 1e9:g} GB | {gpu.bandwidth / 1e12:g} TB/s "
            f"| {gpu.peak_flops / 1e12:g} · 10¹² | {price:.2f} |"
            for name, gpu, price in [("H100", h100, PRICES["h100-sxm"]), ("H200", h200, PRICES["h200"])]
        ),
    ):
        assert number in said, number


def test_the_table_of_the_model_answer_is_computed_with_the_courses_functions() -> None:
    rows = [line for line in model_answer("the-numbers").splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(OPTIONS)
    words = {bits: word for bits, word, _ in FORMATS}
    for row, option in zip(rows, OPTIONS, strict=True):
        plan = option.plan
        used = plan.used_bytes(DOCTORS, CONTEXT)
        cells = [cell.strip().split(" (")[0] for cell in row.strip("| ").split("|")]
        assert cells == [
            words[option.bits],
            f"{plan.weight_bytes / 1e9:.1f}",
            f"{used / 1e9:.1f}",
            option.gpu_name[:4].upper(),
            f"{plan.n_gpus}",
            f"{100 * used / plan.memory_bytes:.0f} %",
            f"{1000 * option.seconds():.1f} ms",
            f"{option.speed():.0f}",
            f"{1000 * option.seconds(GUESSES + 1):.1f} ms",
            f"{option.speed(LETTERS):.0f}",
            f"{option.speed(FREE_TEXT):.0f}",
            f"{option.first_token:.2f} s",
            f"{option.price:.2f}",
        ]


def test_the_case_binds_by_the_first_token_by_speed_and_by_drafts() -> None:
    in_time = [option for option in OPTIONS if option.first_token <= FIRST_TOKEN]
    plain = [option for option in in_time if option.speed() >= TOKENS_PER_SECOND]
    drafting = [option for option in in_time if option.speed(FREE_TEXT) >= TOKENS_PER_SECOND]
    slower_with_drafts = [option for option in in_time if option.speed(FREE_TEXT) < option.speed()]

    def names(options: list[Option]) -> list[tuple[int, str]]:
        return [(option.bits, option.gpu_name) for option in options]

    assert names(in_time) == [(16, "h100-sxm"), (16, "h200"), (8, "h100-sxm"), (4, "h100-sxm")]
    assert names(plain) == [(16, "h100-sxm"), (4, "h100-sxm")]
    assert names(drafting) == names(in_time)
    assert names(slower_with_drafts) == [(4, "h100-sxm")]


def test_the_turning_points_of_the_model_answer_hold() -> None:
    chosen, fallback = Option(8, 128, "h100-sxm"), Option(4, 128, "h100-sxm")
    needed = TOKENS_PER_SECOND * chosen.seconds(GUESSES + 1)
    assert chosen.speed(0.164) < TOKENS_PER_SECOND < chosen.speed(0.165)
    assert chosen.speed(FREE_TEXT, doctors=26) < TOKENS_PER_SECOND < chosen.speed(FREE_TEXT, doctors=25)
    assert fallback.speed(doctors=34) < TOKENS_PER_SECOND < fallback.speed(doctors=33)
    longest = int(FILE * FIRST_TOKEN / chosen.first_token)
    said = model_answer("the-recommendation")
    for words in (
        f"{needed:.2f} tokens a pass, an acceptance of 0.165",
        "from 26 doctors on",
        "up to 33 doctors",
        f"more than {longest:,} tokens",
    ):
        assert words in said, words


@pytest.mark.parametrize(
    ("cell", "function"), [("weights", "weight_bytes"), ("gpus", "gpus_needed"), ("step", "step_seconds")]
)
def test_the_courses_own_functions_pass(cell: str, function: str) -> None:
    assert assignment(NAME).lost({cell: f"from reference_impl.bounds.arithmetic import {function}"}) == {}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("rows", [24, 120, 6000])
def test_pass_seconds_is_the_courses_step_without_the_arithmetic_of_attention(option: Option, rows: int) -> None:
    learners = assignment(NAME).solved()["pass_seconds"]
    plan = option.plan
    step = plan.step(DOCTORS, CONTEXT, rows // DOCTORS)
    got = learners(
        MODEL.n_params, rows, plan.weight_bytes, CACHES, option.gpu.bandwidth, option.gpu.peak_flops, plan.n_gpus
    )
    assert got == pytest.approx(step.linear.seconds + step.attention.memory_seconds, rel=1e-12)


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
