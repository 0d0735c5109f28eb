"""Learners' text is cut to a size, and what would steer a terminal is written out."""

from __future__ import annotations

import pytest

from autograder.intake.text import clip, visible
from autograder.run.outputs import Outputs


def test_a_text_that_is_too_long_is_cut_between_characters_and_says_how_long_it_was() -> None:
    assert clip("häuser", 6) == "häuser"[:5] + "... (7 bytes in all)"
    assert clip("häuser", 2, note=False) == "h"
    assert clip(3, 10) == ""
    assert clip("\ud800", 10) == "?"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext, größer 数", "plain\n\ttext, größer 数"),
        ("\x1b]0;owned\x07\x1b[2J", "\\x1b]0;owned\\x07\\x1b[2J"),
        ("back\rover\b", "back\\rover\\x08"),
        ("right \u202eto left", "right \\u202eto left"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_control_characters_are_shown_not_sent(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_an_exceptions_escapes_never_reach_a_terminal() -> None:
    outputs = Outputs()
    outputs.error("Value\x1b[1mError", "\x1b[31mred")
    (error,) = outputs.finish()
    assert (error.ename, error.evalue) == ("Value\\x1b[1mError", "\\x1b[31mred")
