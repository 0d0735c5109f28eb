"""Statistics of questions, similar submissions, and the shares of several graders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.batch.scores import CellScore, Result
from autograder.course.course import CourseError
from autograder.course.gradebook import keep_between_submissions
from autograder.feedback.hints import Hint
from autograder.intake.dropped import write_dropped
from autograder.term import dates, shares
from autograder.term.similarity import pairs
from autograder.term.statistics import Question, questions, table

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <")


@pytest.fixture
def gradebook(tmp_path: Path) -> Iterator[Any]:
    keep_between_submissions()
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        book.add_assignment("ps")
        book.add_notebook("ps", "ps")
        book.add_grade_cell("essay", "ps", "ps", max_score=4, cell_type="markdown")
        for number in range(1, 8):
            book.add_student(f"s{number}")
        yield book


# --- Statistics -----------------------------------------------------------------------------------------------------


def result(first: float, second: float, essay: float | None, why: str = "") -> Result:
    cells = [CellScore("a", first, 2, why), CellScore("b", second, 3), CellScore("essay", essay, 4)]
    return Result("s", None, 9, cells)


def test_mean_median_and_discrimination_are_those_computed_by_hand() -> None:
    # Question a: 2, 1, 0, 1 beside rests of 7, 3, 0, 2. Means 1 and 3; r = 7 / sqrt(2 * 26) = 0.9707.
    found = questions([result(2, 3, 4), result(1, 3, 0), result(0, 0, 0), result(1, 2, None)], [])
    assert found[0] == Question("a", 2, 4, 1.0, 1.0, pytest.approx(0.970725), "", 0)
    assert (found[2].name, found[2].count, found[2].mean, found[2].median) == ("essay", 3, pytest.approx(4 / 3), 0)


def test_a_question_on_which_no_two_learners_differ_has_no_discrimination() -> None:
    assert [one.discrimination for one in questions([result(2, 3, None), result(2, 1, None)], [])] == [None, None]


def test_the_most_frequent_mistake_has_the_name_that_the_bank_gives_it() -> None:
    known = [Hint("off by one", "a", "3 instead of 2", ""), Hint("wrong sign", "a", "-", "")]
    whys = ["result: 3 instead of 2", "result: 3 instead of 2", "result: -2 instead of 2", "no answer was written"]
    found = questions([result(0, 3, 4, why) for why in whys], known)
    assert (found[0].mistake, found[0].times) == ("off by one", 2)
    assert table(found).splitlines()[1] == ("a              2       4   0.00       0               -  2 x off by one")


# --- Similarity -----------------------------------------------------------------------------------------------------

LONG = """
def group_sums(values, size):
    sums = []
    for start in range(0, len(values), size):
        part = values[start : start + size]
        total = 0
        for value in part:
            if value > 0:
                total += value * 2
            else:
                total -= value
        sums.append(total)
    return sums
"""
OTHER = """
def group_sums(values, size):
    padded = list(values) + [0] * (-len(values) % size)
    columns = zip(*[iter(padded)] * size)
    return [sum(2 * v if v > 0 else -v for v in column) for column in columns] or [0, 0][:0]
"""


def test_a_copy_with_other_names_other_spacing_and_other_comments_is_found() -> None:
    renamed = LONG.replace("total", "acc").replace("part", "chunk").replace("sums = []", "sums = []  # mine")
    (pair,) = pairs({"ada": LONG, "bob": renamed, "cy": OTHER}, "")
    assert (pair.first, pair.second, pair.share) == ("ada", "bob", 1.0)


def test_what_was_released_does_not_count_as_copied() -> None:
    assert len(pairs({"ada": LONG, "bob": LONG}, "")) == 1
    assert pairs({"ada": LONG, "bob": LONG}, f"x = 1\n{LONG}") == []


def test_short_answers_and_text_that_is_no_python_are_not_compared() -> None:
    assert pairs({"ada": "x = 1", "bob": "x = 1", "cy": "def f(:\n  '''", "di": ""}, "") == []


# --- Several graders ------------------------------------------------------------------------------------------------


def sizes(of: dict[str, str]) -> dict[str, int]:
    return dict(Counter(of.values()))


def test_shares_differ_by_one_at_most_and_stay_when_somebody_joins_or_leaves(tmp_path: Path, gradebook: Any) -> None:
    first = shares.divide(tmp_path, gradebook, ["ann", "ben"])
    assert sorted(sizes(first).values()) == [3, 4]
    gradebook.add_student("s8")
    write_dropped(tmp_path, ["s1"])
    second = shares.divide(tmp_path, gradebook)
    assert {name: second[name] for name in first if name != "s1"} == {n: g for n, g in first.items() if n != "s1"}
    assert "s1" not in second
    assert "s8" in second


def test_a_new_grader_takes_over_from_the_others_and_one_who_leaves_hands_over(tmp_path: Path, gradebook: Any) -> None:
    before = shares.divide(tmp_path, gradebook, ["ann", "ben"])
    after = shares.divide(tmp_path, gradebook, ["ann", "ben", "cleo"])
    assert sorted(sizes(after).values()) == [2, 2, 3]
    assert all(after[name] in (before[name], "cleo") for name in before)
    assert set(shares.divide(tmp_path, gradebook, ["ann", "cleo"]).values()) == {"ann", "cleo"}


def test_without_graders_it_says_how_to_name_them(tmp_path: Path, gradebook: Any) -> None:
    with pytest.raises(CourseError, match="no graders are known: name them with --graders"):
        shares.divide(tmp_path, gradebook)


def test_progress_counts_the_answers_that_wait_for_each_grader(tmp_path: Path, gradebook: Any) -> None:
    of = shares.divide(tmp_path, gradebook, ["ann", "ben"])
    mine = [name for name, grader in sorted(of.items()) if grader == "ann"]
    for name in mine[:2]:
        gradebook.add_submission("ps", name)
        gradebook.find_grade("essay", "ps", "ps", name).needs_manual_grade = True
    gradebook.db.commit()
    assert [(one.grader, one.waiting) for one in shares.progress(gradebook, "ps", of)] == [("ann", 2), ("ben", 0)]


# --- Dates ----------------------------------------------------------------------------------------------------------


def test_an_extension_replaces_an_earlier_one_and_zero_takes_it_back(gradebook: Any) -> None:
    dates.set_due(gradebook, "ps", dates.moment("2026-05-01 14:00 Europe/Vienna"))
    assert dates.extend(gradebook, "ps", "s1", timedelta(days=2)) == datetime(2026, 5, 3, 12, 0)
    assert dates.extend(gradebook, "ps", "s1", timedelta(days=1)) == datetime(2026, 5, 2, 12, 0)
    dates.extend(gradebook, "ps", "s1", timedelta(0))
    assert gradebook.find_submission("ps", "s1").extension is None
    with pytest.raises(CourseError, match="No such student: eve"):
        dates.extend(gradebook, "ps", "eve", timedelta(days=1))


@pytest.mark.parametrize("text", ["soon", "2026-13-01", ""])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(CourseError, match="is no time such as 2026-05-01 12:00 UTC"):
        dates.moment(text)
