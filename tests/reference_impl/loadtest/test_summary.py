"""The figures of a run, on timelines small enough to check by hand."""

from __future__ import annotations

import math
from dataclasses import astuple

import pytest

from reference_impl.engine.metrics import Timeline
from reference_impl.loadtest.summary import Limits, Spread, summarize


def timeline(arrival: float, *times: float, end: float | None = None) -> Timeline:
    """One token at each time; ends with the last one, or at `end`."""
    line = Timeline(arrival)
    for time in times:
        line.add(time)
    line.close(times[-1] if end is None else end)
    return line


def test_percentiles_are_interpolated_linearly_between_ranks() -> None:
    spread = Spread.of([5.0, 1.0, 4.0, 2.0, 3.0, None])
    assert spread is not None
    assert astuple(spread) == pytest.approx((3.0, 3.0, 4.6, 4.96, 5.0))


def test_a_spread_leaves_out_requests_that_have_no_figure() -> None:
    assert Spread.of([None, 1.0, 3.0]) == Spread(mean=2.0, p50=2.0, p90=2.8, p99=2.98, max=3.0)
    assert Spread.of([None]) is None


def test_throughput_and_goodput_of_three_requests() -> None:
    quick = timeline(0.0, 0.2, 0.3, 0.4)  # TTFT 0.2, TPOT 0.1
    late = timeline(1.0, 3.0, 3.1)  # TTFT 2.0
    slow = timeline(1.0, 1.1, 5.0)  # TPOT 3.9; ends at 5
    summary = summarize([quick, late, slow], Limits(ttft=1.0, tpot=0.5))
    assert summary.duration == 5.0
    assert summary.n_tokens == 7
    assert summary.tokens_per_second == pytest.approx(1.4)
    assert summary.requests_per_second == pytest.approx(0.6)
    assert summary.goodput == pytest.approx(0.2)


def test_a_request_exactly_at_the_limits_is_good() -> None:
    assert Limits(ttft=1.0, tpot=0.5).kept_by(timeline(0.0, 1.0, 1.5))


def test_a_single_token_keeps_any_limit_on_tpot() -> None:
    assert Limits(ttft=1.0, tpot=0.0).kept_by(timeline(0.0, 1.0))


def test_a_cancelled_request_is_never_good_though_its_tokens_count() -> None:
    cancelled = Timeline(0.0)
    cancelled.add(0.1)
    cancelled.close(2.0, completed=False)
    summary = summarize([cancelled])
    assert (summary.n_completed, summary.goodput, summary.n_tokens, summary.duration) == (0, 0.0, 1, 2.0)
    assert summary.ttft is None


def test_a_run_that_took_no_time_has_no_infinite_rate() -> None:
    assert summarize([timeline(1.0, 1.0)]).tokens_per_second == 0.0
    assert math.isfinite(summarize([timeline(1.0, 1.0)]).goodput)


def test_no_requests_are_no_summary() -> None:
    with pytest.raises(ValueError, match="no requests"):
        summarize([])
