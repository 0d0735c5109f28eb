"""Hints written from the bank: each known mistake is told by its message, or shares a hint with those it looks like."""

from __future__ import annotations

import tomllib
from pathlib import Path

from autograder.feedback import hints
from autograder.proof import prove
from autograder.proof.bank import Variant
from autograder.proof.mistakes import Mistake, toml


def mistake(name: str, *messages: str, test: str = "values") -> Mistake:
    variant = Variant("ps", "double", name, "wrong", f"Title of {name}.", f"Hint for {name}?", (test,), "")
    return Mistake(variant, [{test: message} for message in messages])


def message(got: str, given: str = "2", what: str = "double") -> str:
    return f"{what}: {got} instead of 4\n  for input: {given}\n  expected:  4\n  got:       {got}"


def shown(mistakes: list[Mistake], said: str, test: str = "values") -> str:
    """The text of the hint that a learner reads for this message."""
    known = [hints.Hint(**hint) for hint in tomllib.loads(toml(mistakes))["hint"]]
    found = hints.first(known, test, said)
    return found.text if found else ""


def test_a_mistake_is_told_by_its_message_on_an_example_of_the_notebook() -> None:
    both = [mistake("added", *[message("3")] * 2), mistake("squared", *[message("16")] * 2)]
    assert shown(both, message("3")) == "Hint for added?"
    assert shown(both, message("16")) == "Hint for squared?"
    assert shown(both, message("5")) == ""
    assert shown(both, message("3", given="7")) == ""
    assert shown(both, message("3"), test="other") == ""


def test_the_last_digits_of_a_fraction_do_not_matter() -> None:
    known = [
        mistake("third", *[message("1.3333333333333333")] * 2),
        mistake("tenth", *[message("0.30000000000000004")] * 2),
    ]
    for got in ("1.3333333333333335", "1.33333331"):
        assert shown(known, message(got)) == "Hint for third?"
    for got in ("0.3", "0.30000000000000004", "0.3000000000000001"):
        assert shown(known, message(got)) == "Hint for tenth?"
    assert shown(known, message("1.4")) == ""


def test_a_message_that_changes_with_the_random_inputs_is_matched_without_its_numbers() -> None:
    known = [
        mistake("rounded", message("3.7", given="1.85"), message("4.1e-3", given="2.05")),
        mistake("added", *[message("3")] * 2),
    ]
    assert shown(known, message("812.25", given="406.1")) == "One possibility among others: Hint for rounded?"
    assert shown(known, message("3")) == "Hint for added?"


def test_an_error_that_the_learners_code_raises_is_matched_by_its_kind_and_function() -> None:
    known = [
        mistake(
            "past_the_end", "IndexError: double raised IndexError: list index out of range (line 3 of its cell: x[9])"
        )
    ]
    assert shown(known, "IndexError: double raised IndexError: pop from empty list (line 7 of its cell: x.pop())")
    assert not shown(known, "IndexError: triple raised IndexError: list index out of range")


def test_mistakes_that_no_message_tells_apart_share_a_hint_that_names_both() -> None:
    known = [mistake("up", *[message("5")] * 2), mistake("nearest", *[message("5")] * 2)]
    assert shown(known, message("5")) == "Hint for up? Or: Hint for nearest?"


def test_what_came_tells_mistakes_apart_that_begin_alike() -> None:
    left, right = (f"line 1 differs\n  for input: 'a'\n  expected:  'b'\n  got:       '{got}'" for got in "cd")
    known = [mistake("left", left, left), mistake("right", right, right)]
    assert shown(known, left) == "Hint for left?"
    assert shown(known, right) == "Hint for right?"


def test_prove_says_whose_hint_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "ps.toml"
    added, variant = mistake("added", *[message("3")] * 2), mistake("other").variant
    assert prove.unhinted(path, variant, {"values": message("3")}) == ""  # a course without hints
    path.write_text(toml([added]))
    assert prove.unhinted(path, added.variant, {"values": message("3")}) == ""
    assert "python -m autograder hints ps" in prove.unhinted(path, variant, {"values": message("3")})


def test_where_a_test_could_not_go_on_does_not_matter() -> None:
    known = [
        mistake(
            "nothing", "TypeError: 'NoneType' object is not iterable (in line 4 of the test, which could not go on)"
        )
    ]
    said = (
        "TypeError: 'NoneType' object is not iterable (in a part of the test that is not shown, which could not go on)"
    )
    assert shown(known, said) == "Hint for nothing?"
