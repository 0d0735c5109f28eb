"""The times of a request, on timelines small enough to check by hand."""

from __future__ import annotations

import pytest

from reference_impl.engine.metrics import Timeline


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
