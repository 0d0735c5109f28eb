"""Requests: what is refused, how an answer ends, and which text may be shown when."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.request import FinishReason, Request, RequestState
from reference_impl.engine.stopping import StopFinder


class Letters:
    """Token 0 is "a", 1 is "b", ...; token 26 is the first half of "é" and 27 its second half."""

    def __init__(self) -> None:
        self.half = False

    def push(self, token: int) -> str:
        if token == 26:
            self.half = True
            return ""
        if token == 27:
            self.half = False
            return "é"
        return chr(ord("a") + token)

    def flush(self) -> str:
        return "\ufffd" if self.half else ""


def state(text_stream: bool = True, max_tokens: int = 10, seed: int = 0, **wishes: object) -> RequestState:
    request = Request("r", (1, 2), max_tokens, **wishes)  # type: ignore[arg-type]
    stream = Letters() if text_stream else None
    return RequestState(request, arrival=0.0, serial=0, seed=seed, max_total=2 + max_tokens, stream=stream)


def spell(word: str) -> list[int]:
    return [ord(letter) - ord("a") for letter in word]


def test_an_empty_prompt_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'q7' has an empty prompt"):
        Request("q7", ())


@pytest.mark.parametrize("n", [0, -1])
def test_an_answer_of_no_tokens_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=f"'q7' asks for {n} tokens"):
        Request("q7", (1,), max_tokens=n)


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="'q7' has an empty stop string"):
        Request("q7", (1,), stop_strings=("x", ""))


def test_one_stop_string_without_a_tuple_is_one_stop_string_not_its_letters() -> None:
    assert Request("q7", (1,), stop_strings="END").stop_strings == ("END",)  # type: ignore[arg-type]


def test_the_answer_ends_at_its_most_tokens() -> None:
    running = state(max_tokens=2)
    assert [running.accept(3), running.accept(4)] == ["d", "e"]
    assert running.finish == FinishReason.LENGTH
    assert running.tokens[-running.n_output :] == [3, 4]


def test_a_stop_token_ends_the_answer_and_shows_no_text() -> None:
    running = state(stop_tokens=frozenset({5}))
    assert [running.accept(3), running.accept(5)] == ["d", ""]
    assert running.finish == FinishReason.STOP
    assert running.tokens[-running.n_output :] == [3, 5]


def test_token_id_0_can_be_a_stop_token() -> None:
    running = state(stop_tokens=frozenset({0}))
    running.accept(0)
    assert running.finish == FinishReason.STOP


def test_a_stop_string_over_three_tokens_is_never_shown_in_part() -> None:
    running = state(stop_strings=("cde",))
    assert [running.accept(token) for token in spell("abcde")] == ["a", "b", "", "", ""]
    assert running.finish == FinishReason.STOP
    assert running.reason == "cde"


def test_held_text_is_released_when_it_turns_out_to_be_no_stop_string() -> None:
    running = state(stop_strings=("cde",))
    assert [running.accept(token) for token in spell("cdx")] == ["", "", "cdx"]


def test_held_text_that_begins_anew_inside_itself_is_released_in_part() -> None:
    running = state(stop_strings=("aab",))
    assert [running.accept(token) for token in spell("aaab")] == ["", "", "a", ""]
    assert running.finish == FinishReason.STOP


def test_held_text_is_released_when_the_answer_ends_for_length() -> None:
    running = state(max_tokens=3, stop_strings=("cde",))
    assert [running.accept(token) for token in spell("acd")] == ["a", "", "cd"]
    assert running.finish == FinishReason.LENGTH


def test_held_text_is_released_when_a_stop_token_ends_the_answer() -> None:
    running = state(stop_strings=("cde",), stop_tokens=frozenset({9}))
    assert [running.accept(token) for token in [*spell("cd"), 9]] == ["", "", "cd"]


def test_a_stop_string_completed_by_the_last_allowed_token_is_a_stop() -> None:
    running = state(max_tokens=2, stop_strings=("ab",))
    assert [running.accept(0), running.accept(1)] == ["", ""]
    assert running.finish == FinishReason.STOP


def test_half_a_character_is_shown_only_when_it_is_whole_or_the_answer_ends() -> None:
    running = state(max_tokens=3)
    assert [running.accept(token) for token in (26, 27, 26)] == ["", "é", "\ufffd"]


def test_the_number_that_chooses_a_token_depends_on_its_place_alone() -> None:
    expected = random.Random(41)
    numbers = [expected.random() for _ in range(4)]
    asked_late = state(seed=41)
    assert asked_late.uniform(3) == numbers[3]
    assert [asked_late.uniform(place) for place in (0, 1, 1, 2, 0)] == [numbers[i] for i in (0, 1, 1, 2, 0)]


def test_sampling_is_greedy_unless_asked_otherwise() -> None:
    assert Request("q7", (1,)).sampling == SamplingParams(temperature=0)


def first_stop(text: str, stops: list[str]) -> tuple[str, str | None]:
    """By definition: read character by character until some stop string ends here; the longest of those counts."""
    for end in range(1, len(text) + 1):
        here = [stop for stop in stops if text[:end].endswith(stop)]
        if here:
            longest = max(here, key=len)
            return text[: end - len(longest)], longest
    return text, None


@settings(deadline=None)
@given(st.lists(st.text("ab", max_size=4), max_size=6), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_stop_strings_end_the_text_at_the_same_place_however_it_is_cut(pieces: list[str], stops: list[str]) -> None:
    shown, stopped = first_stop("".join(pieces), stops)
    finder = StopFinder(stops)
    output = ""
    for piece in pieces:
        output += finder.feed(piece)
        assert shown.startswith(output), "something was shown that belongs to a stop string"
    assert finder.stopped == stopped
    assert output + finder.flush() == shown


@settings(deadline=None)
@given(st.text("ab", max_size=12), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
def test_no_more_text_is_held_back_than_one_character_less_than_the_longest_stop_string(
    text: str, stops: list[str]
) -> None:
    finder = StopFinder(stops)
    shown = "".join(finder.feed(letter) for letter in text)
    if finder.stopped is None:
        assert len(text) - len(shown) < max(map(len, stops))
