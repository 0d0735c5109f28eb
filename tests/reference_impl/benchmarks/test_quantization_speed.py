"""Tokens per second by format: every format has its turn, and time comes from the clock that is given."""

from __future__ import annotations

from reference_impl.benchmarks.quality.speed import decode_rates
from reference_impl.quantization.calibrate import Recipe


def test_a_format_has_one_rate_whatever_the_method_and_none_without_a_kernel() -> None:
    """A clock that moves a quarter of a second whenever it is read: every step takes as long, four a second."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.25
        return now

    recipes = [Recipe("rounding", 8, 128), Recipe("gptq", 4, 32), Recipe("awq", 4, 32), Recipe("rounding", 3, 128)]
    rates = decode_rates("course-draft", recipes, rounds=2, clock=clock)
    assert rates == {None: 4.0, (8, 128): 4.0, (4, 32): 4.0}
