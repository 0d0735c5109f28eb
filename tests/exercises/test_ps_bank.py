"""The bank is large enough, and says of each mistake something of its own. What its solutions earn: test_proven.py."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from in_process import COURSE, Assignment, assignment

from autograder.course import source
from autograder.proof import bank

BANK = COURSE / "bank"
KNOWN = sorted(path.name for path in BANK.iterdir() if path.is_dir())
VARIANTS = [variant for name in KNOWN for variant in bank.read(BANK, name)]


@pytest.mark.parametrize("name", KNOWN)
def test_each_function_has_at_least_eight_wrong_and_three_right_solutions(name: str) -> None:
    functions = assignment(name).cells.learners_names
    variants = [variant for variant in VARIANTS if variant.assignment == name]
    for function, (kind, least) in itertools.product(functions, [("wrong", 8), ("right", 3)]):
        count = sum(variant.function == function and variant.kind == kind for variant in variants)
        assert count >= least, f"{function} has {count} {kind} solutions"
    assert {variant.function for variant in variants if variant.function} <= functions


def test_no_two_wrong_solutions_of_a_function_share_a_hint_or_a_misconception() -> None:
    wrong = [(v.assignment, v.function, text) for v in VARIANTS if v.kind == "wrong" for text in (v.title, v.hint)]
    assert len(set(wrong)) == len(wrong)


@pytest.mark.parametrize("name", [name for name in KNOWN if (BANK / name / "hard_coded.py").is_file()])
def test_the_hard_coded_answers_do_pass_what_the_notebook_shows(name: str) -> None:
    """Otherwise their low score would say nothing."""
    known = assignment(name)
    (variant,) = (variant for variant in VARIANTS if (variant.assignment, variant.kind) == (name, bank.HARD_CODED))
    shown = [replace(cell, source=cell.visible) if cell.kind == "test" else cell for cell in known.cells.cells]
    lost = Assignment(name, source.Source(tuple(shown))).lost(bank.answers(variant, known.cells))
    passed = sum(cell.points for cell in shown if cell.kind == "test" and cell.name not in lost)
    assert passed >= known.points / 2, lost


@pytest.mark.parametrize("name", KNOWN)
def test_no_hint_gives_a_line_of_a_solution_away(name: str) -> None:
    answers = [cell.source for cell in assignment(name).cells.cells if cell.kind == "answer"]
    lines = {
        line.strip() for text in answers for line in text.splitlines() if not line.strip().startswith(("#", "def"))
    }
    for variant in VARIANTS:
        if variant.assignment == name:
            assert not [line for line in lines if len(line) >= 12 and line in variant.hint], variant.label
