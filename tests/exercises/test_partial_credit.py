"""An early mistake costs only its own points: later parts are graded with the course's own function in its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from in_process import COURSE, assignment

from autograder.course.course import Course, open_nbgrader
from autograder.proof import bank, prove

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NAME = "ps4_speculative"


def graded(folder: Path, *labels: str) -> prove.Outcome:
    """The reference of problem set 4 with these solutions of the bank in it, graded on a submission's way."""
    cells = assignment(NAME).cells
    variants = {variant.label: variant for variant in bank.read(COURSE / "bank", NAME)}
    answers = {cell.name: cell.source for cell in cells.cells if cell.kind == "answer"}
    for label in labels:
        answers |= bank.answers(variants[label], cells)
    api = open_nbgrader(Course(COURSE), folder)
    plan = list(prove._plan(Course(COURSE), api, NAME))
    (reference,) = (trial for trial in plan if trial.variant.kind == "reference")
    return prove._try((folder, replace(reference, answers=answers), 5))


def test_two_broken_early_functions_cost_their_own_points_only(tmp_path: Path) -> None:
    outcome = graded(tmp_path, "parse_round/wrong_labels_not_checked", "accept_or_resample/wrong_zero_is_no_token")
    assert set(outcome.lost) == {"round-refuses", "rule-resamples", "rule-is-exact"}


def test_a_later_mistake_still_costs_points_and_the_learner_reads_what_it_was_graded_with(tmp_path: Path) -> None:
    outcome = graded(
        tmp_path, "accept_or_resample/wrong_zero_is_no_token", "speculative_generate/wrong_bonus_forgotten"
    )
    own = {"rule-resamples", "rule-is-exact"}
    later = set(outcome.lost) - own
    assert "loop-passes" in later
    note = "graded with the course's own accept_or_resample in place of yours, which failed its tests"
    assert all(note in outcome.lost[name] for name in later)
    assert not any(note in outcome.lost[name] for name in own)


def test_an_early_function_that_works_is_the_one_that_later_parts_use(tmp_path: Path) -> None:
    outcome = graded(tmp_path, "speculative_generate/wrong_bonus_forgotten")
    assert "loop-passes" in outcome.lost
    assert not any("the course's own" in message for message in outcome.lost.values())
