"""Hints for known mistakes: which failure of which test means which mistake.

A course keeps them in `hints/ASSIGNMENT.toml`, beside `source/` (what lies in `source/` is released to learners). The
first hint that fits is shown, so exact ones come first. A course with a bank of wrong solutions has the file written
from it (`python -m autograder hints`, mistakes.py); any other writes it by hand:

    [[hint]]
    kind = "128 instead of 127"
    test = "group-*"              # names of test cells; * for any
    match = "instead of 127"      # a regular expression, searched in the failed check's message
    text = "The largest weight becomes 127, so the scale is max|w| / 127."

Before the message of another error than a check's stands its name (`ValueError: ...`). It is searched whole, as graders
read it, also where a check is hidden and learners are not shown its values; so `text` should tell none of them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from autograder.course.course import CourseError


@dataclass(frozen=True)
class Hint:
    """A kind of mistake, how it shows, and what to tell."""

    kind: str
    test: str
    match: str
    text: str

    def fits(self, test: str, message: str) -> bool:
        return fnmatchcase(test, self.test) and re.search(self.match, message) is not None


def read(path: Path) -> list[Hint]:
    """The hints in a file; none if there is no file. Raises CourseError that names the file and what is wrong."""
    if not path.is_file():
        return []
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("hint", [])
        hints = [Hint(one["kind"], one.get("test", "*"), one["match"], one["text"]) for one in found]
        for hint in hints:
            re.compile(hint.match)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, re.error) as error:
        raise CourseError(f"{path}: {type(error).__name__}: {error}") from error
    return hints


def first(hints: list[Hint], test: str, message: str) -> Hint | None:
    """The first hint that fits a failed test."""
    return next((hint for hint in hints if hint.fits(test, message)), None)
