"""Writes an assignment's hints (hints.py) from its bank, so that a known mistake gets the bank's advice.

A wrong solution of the bank fails its test with a message of its own, so the message names the mistake.
`prove` is run with different random inputs. Where a mistake's message stays the same it comes from an example that the
notebook shows, and is matched with its input and its numbers; where it changes, the numbers are left out, and the hint
says that it is a guess. Mistakes that no message tells apart share a hint that names each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from autograder.course.course import Course
from autograder.proof import prove
from autograder.proof.bank import Variant
from autograder.sandbox import warm_kernels

HINTS = "hints"  # in the course's folder
_SEEDS = (1, 2)
_MOST = 3  # mistakes that share a hint; where more end in the same message, those that the test is meant to catch
_DIGITS = 6  # of a fraction; the last ones depend on the order of the operations
_FRACTION = re.compile(r"-?\d+\.\d{7,}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_INPUT = 80  # characters of an input that are matched
_ANY_NUMBER = r"-?[\d.]+(e[+-]?\d+)?"
_PERHAPS = "One possibility among others: "
_WHERE = re.compile(r" \(in (line \d+|a part) of the test.*")  # where the test itself could not go on
_RAISED = re.compile(r"^(\w+): (\w[\w.]*) raised \1\b")


@dataclass(frozen=True)
class Mistake:
    """A wrong solution, and what a learner reads at its tests in each of several runs."""

    variant: Variant
    runs: Sequence[dict[str, str]]  # test cell -> message


def toml(mistakes: Sequence[Mistake]) -> str:
    """The text of `hints/ASSIGNMENT.toml`: exact messages first, for in such a file the first that fits is taken."""
    lines = [
        "# Written by `python -m autograder hints` from the bank's wrong solutions: change those, then run it again."
    ]
    groups = [group for group in _groups(mistakes) if any(group[0] in one.variant.caught_by for one in group[2])]
    order = lambda group: (group[0], _ANY_NUMBER in group[1], -len(group[1]))
    for test, match, sharing in sorted(groups, key=order):
        many = len(sharing) > _MOST
        sharing = [one for one in sharing if test in one.variant.caught_by or not many]
        kinds = dict.fromkeys(mistake.variant.title.rstrip(".") for mistake in sharing)
        hints = dict.fromkeys(mistake.variant.hint for mistake in sharing)
        loose = many or match.startswith("^") or _ANY_NUMBER in match  # other mistakes may end in the same words
        lines += [
            "",
            "[[hint]]",
            f"kind = {_quoted('; or: '.join(kinds))}",
            f"test = {_quoted(test)}",
            f"match = {_quoted(match)}",
            f"text = {_quoted(loose * _PERHAPS + ' Or: '.join(hints))}",
        ]
    return "\n".join(lines) + "\n"


def main(course: Course, names: Sequence[str], jobs: int) -> int:
    """The command: prove each assignment with two seeds, and write its hints."""
    (course.root / HINTS).mkdir(exist_ok=True)
    for name in names or course.assignments():
        with warm_kernels.fork_server():
            runs = [prove.prove(course, [name], jobs, seed) for seed in _SEEDS]
        wrong = [outcomes for outcomes in zip(*runs, strict=True) if outcomes[0].variant.kind == "wrong"]
        mistakes = [Mistake(same[0].variant, [outcome.lost for outcome in same]) for same in wrong]
        path = course.root / HINTS / f"{name}.toml"
        path.write_text(toml(mistakes), encoding="utf-8")
        print(f"{path}: {len(mistakes)} mistakes")
    return 0


def _groups(mistakes: Sequence[Mistake]) -> Iterator[tuple[str, str, list[Mistake]]]:
    """(test, regular expression, the mistakes it stands for)."""
    tests = dict.fromkeys(test for mistake in mistakes for test in mistake.variant.caught_by)
    for test in tests:
        # Mistakes that other tests are meant to catch count too: a message that they share names no single cause.
        failing = [one for one in mistakes if all(test in run for run in one.runs)]

        def seen(one: Mistake, got: bool, test: str = test) -> str:
            return _pattern([run[test] for run in one.runs], got)

        short = _by(failing, lambda one: seen(one, False))
        for match, sharing in short.items():
            if len(sharing) == 1:
                yield test, match, sharing
                continue
            # What came tells them apart, where it is the same in each run.
            longer = _by(sharing, lambda one: seen(one, True))
            yield from ((test, more, some) for more, some in longer.items())


def _by(mistakes: Sequence[Mistake], key: Callable[[Mistake], str]) -> dict[str, list[Mistake]]:
    found: dict[str, list[Mistake]] = {}
    for mistake in mistakes:
        found.setdefault(key(mistake), []).append(mistake)
    return found


def _pattern(messages: Sequence[str], got: bool) -> str:
    """A regular expression for what these messages of one mistake have in common."""
    first = messages[0]
    if raised := _RAISED.match(first):
        return f"^{raised[1]}: {_plain(raised[2])} raised {raised[1]}\\b"
    head, *rest = _WHERE.sub("", first).split("\n")
    if len(set(messages)) > 1:
        return _without_numbers(head)
    match = _escaped(head)
    for line in rest:
        if line.startswith("  for input: "):
            match += r"\n" + _escaped(line[: len("  for input: ") + _INPUT])
        elif got and line.startswith("  got: "):
            match += r"[\s\S]*\n" + _escaped(line)
    return match


def _escaped(text: str) -> str:
    """The text as a regular expression that lets the last digits of long fractions differ."""
    parts, at = [], 0
    for number in _FRACTION.finditer(text):
        parts += [_plain(text[at : number.start()]), _digits(number[0])]
        at = number.end()
    return "".join([*parts, _plain(text[at:])])


def _digits(number: str) -> str:
    """0.39999999999999997 is also written 0.4; of other fractions the first digits count."""
    short = f"{float(number):.10g}"
    if len(short) < len(number) - 4 and "e" not in short and float(number) != float(short):
        return rf"(?:{_plain(short)}|{_plain(number[:8])}\d*|{_plain(short)}0\d*)"
    whole, fraction = number.split(".")
    zeros = len(fraction) - len(fraction.lstrip("0"))
    kept = max(_DIGITS - len(whole.lstrip("-0")), zeros + _DIGITS - 1)
    return _plain(f"{whole}.{fraction[:kept]}") + r"\d*"


def _plain(text: str) -> str:
    """re.escape, but for what needs none: spaces and hyphens stay readable."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _without_numbers(text: str) -> str:
    """The text as a regular expression with any number in place of each."""
    parts, at = [], 0
    for number in _NUMBER.finditer(text):
        parts += [_plain(text[at : number.start()]), _ANY_NUMBER]
        at = number.end()
    return "".join([*parts, _plain(text[at:])])


def _quoted(text: str) -> str:
    """As a TOML string; JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)
