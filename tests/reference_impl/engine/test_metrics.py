"""Serving metrics, on timelines small enough to check by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.engine.metrics import Limits, Spread, Timeline, percentile, summarize, synchronized


def timeline(arrival: float, *times: float, end: float | None = None) -> Timeline:
    """One token at each time; ends with the last one, or at `end`."""
    line = Timeline(arrival)
    for time in times:
        line.add(time)
    line.close(times[-1] if end is None else end)
    return line


def test_ttft_counts_from_arrival_with_the_time_in_the_queue() -> None:
    assert timeline(2.0, 5.0, 6.0).ttft == 3.0


def test_ttft_waits_for_the_first_delivery_that_shows_something() -> None:
    line = Timeline(1.0)
    line.add(2.0, visible=False)  # half a character, or the empty first chunk of an HTTP stream
    line.add(4.0)
    assert line.ttft == 3.0


def test_tpot_divides_by_one_interval_less_than_tokens() -> None:
    assert timeline(0.0, 1.0, 1.5, 3.0, 4.0).tpot == 1.0  # 3 seconds, 4 tokens, 3 intervals


def test_tpot_of_a_single_token_is_undefined() -> None:
    line = timeline(0.0, 1.0)
    assert line.tpot is None
    assert line.itl == []


def test_a_request_without_any_token_has_no_ttft_and_no_tpot() -> None:
    line = Timeline(0.0)
    line.close(3.0, completed=False)
    assert (line.ttft, line.tpot, line.itl, line.latency) == (None, None, [], 3.0)


def test_tpot_counts_tokens_that_came_together_by_their_number() -> None:
    line = Timeline(0.0)
    for time, n_tokens in ((1.0, 1), (2.0, 4), (3.0, 4)):  # two verified drafts of 4 tokens
        line.add(time, n_tokens)
    assert line.tpot == 2.0 / 8
    assert line.itl == [1.0, 1.0]


def test_tpot_ignores_tokens_before_the_first_and_after_the_last_visible_one() -> None:
    line = Timeline(0.0)
    line.add(1.0, visible=False)
    line.add(2.0)
    line.add(3.0)
    line.add(4.0)
    line.add(9.0, visible=False)  # the end token
    assert line.tpot == 1.0


def test_itl_shows_the_stall_that_tpot_hides() -> None:
    line = timeline(0.0, 1.0, 1.1, 5.1, 5.2)
    assert line.itl == pytest.approx([0.1, 4.0, 0.1])
    assert line.tpot == pytest.approx(1.4)


def test_latency_runs_from_arrival_to_the_end() -> None:
    assert timeline(2.0, 5.0, end=7.5).latency == 5.5
    assert Timeline(2.0).latency is None


@pytest.mark.parametrize(("percent", "expected"), [(0, 1.0), (25, 2.0), (50, 3.0), (90, 4.6), (99, 4.96), (100, 5.0)])
def test_percentiles_are_interpolated_linearly_between_ranks(percent: float, expected: float) -> None:
    assert percentile([5.0, 1.0, 4.0, 2.0, 3.0], percent) == pytest.approx(expected)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0, 100))
def test_percentiles_agree_with_numpy(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)), rel=1e-9, abs=1e-6)


def test_a_percentile_of_nothing_or_beyond_100_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="from 0 to 100, got 101"):
        percentile([1.0], 101)


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


def test_on_the_cpu_a_synchronized_clock_is_the_clock_itself() -> None:
    assert synchronized(lambda: 12.5, "cpu")() == 12.5


@pytest.mark.gpu
def test_on_a_gpu_a_synchronized_clock_waits_for_the_queued_work() -> None:
    import time

    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    clock = synchronized(time.perf_counter, "cuda")
    x = torch.randn(8192, 8192, device="cuda")
    torch.mm(x, x)
    start = clock()
    y = x
    for _ in range(10):
        y = torch.mm(y, x)
    done = torch.cuda.Event()
    done.record()
    clock()
    assert done.query(), "the clock was read before the GPU had finished"
    assert clock() > start
