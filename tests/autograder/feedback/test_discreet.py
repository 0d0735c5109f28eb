"""What a learner reads of a check whose values are hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autograder import checks
from autograder.feedback import hidden_checks

WEIGHT = np.array([[0.123456, 7.5], [3.25, -8.75]], dtype=np.float32)


def message(check: Callable[..., None], *words: Any, **more: Any) -> str:
    with pytest.raises(checks.CheckError) as caught:
        check(*words, **more)
    return hidden_checks.check(caught.value)


def test_a_wrong_value_is_told_with_the_kind_of_input_and_what_came() -> None:
    said = message(checks.check_close, 12.25, 36.5, given=(4321, 0.75), what="step_seconds")
    assert said == ("step_seconds: a wrong value\n  for input: an integer, a number (hidden)\n  got:       12.25")


@pytest.mark.parametrize("got", [4321, -4321, [5, 4321], "it was 4321", {"x": 4321.0}])
def test_what_came_is_not_told_where_it_holds_an_input(got: Any) -> None:
    said = message(checks.check_equal, got, 8642, given=4321, what="double")
    assert "4321" not in said
    assert "8642" not in said


def test_an_array_that_came_is_told_by_its_kind_where_it_shares_a_number_with_the_input() -> None:
    said = message(checks.check_close, WEIGHT * [1, 2], WEIGHT * 3, given=(WEIGHT, 64), what="scales")
    assert "for input: an array of float32 with shape (2, 2), an integer (hidden)" in said
    assert said.endswith("got:       an array of float64 with shape (2, 2)")


@pytest.mark.parametrize(
    ("got", "expected", "why"),
    [
        ([1], [31, 32], "another number of values"),
        (np.zeros(3), np.full(4, 77.0), "another shape"),
        (3.5, 77, "expected integers, got floating-point numbers"),
        ("a\nb", "a\nxyz", "line 2 differs"),
        ("a", "a\nxyz", "another number of lines"),
        (None, 77, "expected numbers, got a value of type NoneType"),
    ],
)
def test_no_reason_holds_the_expected_value(got: Any, expected: Any, why: str) -> None:
    said = message(checks.check_equal, got, expected, given="secret words", what="f")
    assert said.splitlines()[0] == f"f: {why}"
    assert not {"77", "31", "32", "xyz", "secret"} & set(said.replace("(", " ").split())


def test_a_bound_and_an_error_that_was_expected() -> None:
    assert message(checks.check_at_most, 9.5, 3.25, what="error").startswith("error: too large")
    said = message(checks.check_raises, ValueError, lambda text: 5.5, "secret", what="parse")
    assert said.splitlines()[0] == "parse: ValueError was not raised"
    assert "secret" not in said
    assert "the return value 5.5" in said


def test_an_assertion_is_told_as_far_as_it_is_written_out() -> None:
    source = """x = 5
assert f(x) == 10, f"f({x}) gives {f(x)}"
assert f(x), "f is false"
assert f(x), secret
assert f(x)"""
    assert hidden_checks.assertion(source, 2) == "f(...) gives ..."
    assert hidden_checks.assertion(source, 3) == "f is false"
    for line in (4, 5):
        assert hidden_checks.assertion(source, line) == "a condition that is not shown does not hold"


def test_the_text_of_an_exception_is_told_if_the_learner_wrote_it_out() -> None:
    assert hidden_checks.exception("no weights", 'raise ValueError("no weights")') == "no weights"
    assert hidden_checks.exception("0.125", "raise ValueError(text)") == ""
