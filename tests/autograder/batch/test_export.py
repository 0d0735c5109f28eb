"""Grades for elsewhere, what lateness costs, and what a learner changed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from autograder.late import LatePolicy
from klass import KINDS, PS, hand_in, make_class
from small_course import answered, cell, code, write
from traitlets.config import Config

from autograder.batch.export import Canvas, Grades, Moodle, PerQuestion
from autograder.course.course import CourseError
from autograder.course.gradebook import keep_between_submissions
from autograder.intake import arrival
from autograder.intake.collect import prepare
from autograder.intake.diff import show

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")


DUE = datetime(2026, 5, 1, 12, 0)  # as nbgrader keeps times: UTC, and does not say so
RULES = {
    "AssignLatePenalties": {"plugin_class": "autograder.late.LatePolicy"},
    "LatePolicy": {"per_day": 0.25},
    "Points": {"bonus": {"ps": ["test-c"]}},
}


@pytest.fixture
def gradebook(tmp_path: Path) -> Iterator[Any]:
    """Ada has everything and is two days late; Bob waits for his essay; Cy's name is a formula, he handed in nothing.

    The essay is graded by hand; test-c is a bonus.
    """
    from nbgrader.api import Gradebook

    keep_between_submissions()  # needs no program on PATH for a new gradebook
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        book.add_assignment("ps", duedate=DUE)
        book.add_notebook("ps", "ps")
        book.add_grade_cell("test-b", "ps", "ps", max_score=3, cell_type="code")
        book.add_grade_cell("test-a", "ps", "ps", max_score=2, cell_type="code")
        book.add_grade_cell("test-c", "ps", "ps", max_score=5, cell_type="code")
        book.add_grade_cell("essay", "ps", "ps", max_score=4, cell_type="markdown")
        book.add_student("ada", first_name="Ada", last_name="Lovelace", email="ada@x.org", lms_user_id="17")
        book.add_student("bob", first_name="Bob", last_name="B, Jr")
        book.add_student("cy", last_name="=HYPERLINK(1)")
        for student, essay in (("ada", 3.5), ("bob", None)):
            book.add_submission("ps", student, timestamp=DUE + timedelta(days=2 if student == "ada" else 0))
            for name, points in (("test-a", 2.0), ("test-b", 1.0), ("test-c", 0.5), ("essay", essay)):
                grade = book.find_grade(name, "ps", "ps", student)
                grade.needs_manual_grade = points is None
                if name == "essay":
                    grade.manual_score = points
                else:
                    grade.auto_score = points
        book.db.commit()
        yield book


def rows(
    plugin: type, gradebook: Any, path: Path, config: dict[str, dict[str, Any]] | None = None, **options: Any
) -> list[list[str]]:
    plugin(to=str(path), config=Config({**RULES, **(config or {})}), **options).export(gradebook)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_every_question_has_a_column_and_what_waits_for_a_hand_is_empty(gradebook: Any, tmp_path: Path) -> None:
    assert rows(PerQuestion, gradebook, tmp_path / "out.csv") == [
        ["student_id", "last_name", "first_name", "email", "ps/ps/essay", "ps/ps/test-a", "ps/ps/test-b",
         "ps/ps/test-c", "ps: late penalty", "ps: total"],
        ["maximum", "", "", "", "4", "2", "3", "5", "", "9"],
        ["ada", "Lovelace", "Ada", "ada@x.org", "3.5", "2", "1", "0.5", "3.5", "3.5"],
        ["bob", "B, Jr", "Bob", "", "", "2", "1", "0.5", "0", ""],
        ["cy", "'=HYPERLINK(1)", "", "", "", "", "", "", "", ""],
    ]  # fmt: skip


def test_canvas_gets_its_columns_and_the_points_possible(gradebook: Any, tmp_path: Path) -> None:
    config = {"Canvas": {"columns": {"ps": "Problem set (99)"}}}
    assert rows(Canvas, gradebook, tmp_path / "out.csv", config=config) == [
        ["Student", "ID", "SIS Login ID", "Section", "Problem set (99)"],
        ["    Points Possible", "", "", "", "9"],
        ["Lovelace, Ada", "17", "ada", "", "3.5"],
        ["B, Jr, Bob", "", "bob", "", ""],
        ["'=HYPERLINK(1)", "", "cy", "", ""],
    ]


def test_moodle_gets_user_names_and_a_zero_for_what_is_missing_if_told_so(gradebook: Any, tmp_path: Path) -> None:
    config = {"Moodle": {"missing": "0"}}
    assert rows(Moodle, gradebook, tmp_path / "out.csv", config=config, student=["ada", "cy"]) == [
        ["Username", "ID number", "Email address", "First name", "Last name", "ps"],
        ["ada", "17", "ada@x.org", "Ada", "Lovelace", "3.5"],
        ["cy", "", "", "", "'=HYPERLINK(1)", "0"],
    ]


def test_the_table_of_nbgrader_has_lateness_and_maximum_as_they_are_now(gradebook: Any, tmp_path: Path) -> None:
    names = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"]
    due, two_days_later = "2026-05-01 12:00:00", "2026-05-03 12:00:00"
    assert rows(Grades, gradebook, tmp_path / "out.csv") == [
        [*names, "raw_score", "late_submission_penalty", "score", "max_score"],
        ["ps", due, two_days_later, "ada", "Lovelace", "Ada", "ada@x.org", "7.0", "3.5", "3.5", "9.0"],
        ["ps", due, due, "bob", "B, Jr", "Bob", "", "3.5", "0.0", "3.5", "9.0"],
        ["ps", due, "", "cy", "'=HYPERLINK(1)", "", "", "0.0", "0.0", "0.0", "9.0"],
    ]


def test_lateness_follows_points_by_hand_due_date_extension_and_policy_without_a_regrade(
    gradebook: Any, tmp_path: Path
) -> None:
    def total(**config: Any) -> str:
        return rows(Canvas, gradebook, tmp_path / "out.csv", config=config, student=["ada"])[2][4]

    assert total() == "3.5"  # half of 7
    gradebook.find_grade("essay", "ps", "ps", "ada").manual_score = 1.5
    gradebook.db.commit()
    assert total() == "2.5"  # half of 5
    assert total(LatePolicy={"per_day": 0.1}) == "4"
    gradebook.grant_extension("ps", "ada", days=1)
    assert total() == "3.75"  # one day is left of two
    gradebook.update_or_create_assignment("ps", duedate=DUE + timedelta(days=1))
    assert total() == "5"
    gradebook.update_or_create_assignment("ps", duedate=None)
    assert total() == "5", "no due date, and an extension of it"


def test_what_was_handed_in_and_never_graded_is_empty_and_no_zero(gradebook: Any, tmp_path: Path) -> None:
    gradebook.add_submission("ps", "cy", timestamp=DUE + timedelta(days=9))
    assert rows(Grades, gradebook, tmp_path / "out.csv")[3][7:] == ["", "", "", "9.0"]
    assert rows(PerQuestion, gradebook, tmp_path / "out.csv")[4][4:] == ["", "", "", "", "0", ""]
    assert rows(Canvas, gradebook, tmp_path / "out.csv")[4][4] == ""


def test_an_answer_that_changed_since_it_was_graded_keeps_its_points_in_every_export(
    gradebook: Any, tmp_path: Path
) -> None:
    gradebook.find_grade("essay", "ps", "ps", "ada").needs_manual_grade = True
    gradebook.db.commit()
    assert rows(Canvas, gradebook, tmp_path / "out.csv")[2][4] == "3.5"
    assert rows(PerQuestion, gradebook, tmp_path / "out.csv")[2][4] == "3.5"


def test_an_unknown_assignment_or_student_is_named(gradebook: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no assignment ps9 in the gradebook; known: ps"):
        rows(Canvas, gradebook, tmp_path / "out.csv", assignment=["ps9"])
    with pytest.raises(ValueError, match="no student eve"):
        rows(Moodle, gradebook, tmp_path / "out.csv", student=["eve"])


def test_the_plugins_load_by_name_in_nbgrader_export() -> None:
    from nbgrader.apps.exportapp import ExportApp

    for name in ("PerQuestion", "Canvas", "Moodle"):
        app = ExportApp(config=Config({"ExportApp": {"plugin_class": f"autograder.batch.export.{name}"}}))
        assert app.plugin_class.__name__ == name


@pytest.mark.parametrize(
    ("seconds", "penalty"), [(1, None), (600, None), (601, 2.0), (86_400 + 600, 2.0), (86_400 + 601, 4.0), (1e7, 10.0)]
)
def test_each_day_begun_after_the_grace_costs_its_share_up_to_a_most(seconds: float, penalty: float | None) -> None:
    policy = LatePolicy(config=Config({"LatePolicy": {"grace_seconds": 600, "per_day": 0.1, "most": 0.5}}))
    assert policy.late_submission_penalty("ada", 20, seconds) == penalty


def test_files_changed_after_the_stated_time_are_put_before_the_instructor_and_cost_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "inbound"
    folder.mkdir()
    (folder / "ps.ipynb").write_text("{}")
    (folder / "timestamp.txt").write_text("2020-01-01 00:00:00 UTC")
    repairs, (doubt,) = arrival.settle(folder, datetime(2020, 1, 1, 0, 1, 10, tzinfo=UTC).timestamp())
    assert repairs == []
    assert (folder / "timestamp.txt").read_text() == "2020-01-01 00:00:00 UTC"
    assert doubt.startswith(
        "It states 2020-01-01 00:00:00 UTC as the time of submission, which counts; its files were changed until "
        "2020-01-01 00:01:10 UTC"
    )


def test_a_submission_that_states_no_time_is_put_before_the_instructor(tmp_path: Path) -> None:
    assert arrival.settle(tmp_path, 0.0)[1][0].startswith(
        "It states no time of submission; its files were last changed at 1970-01-01 00:00:00 UTC."
    )
    assert not (tmp_path / "timestamp.txt").exists()


def test_the_time_that_nbgraders_submit_wrote_is_believed(tmp_path: Path) -> None:
    text = f"{datetime.now(UTC).replace(tzinfo=None)} UTC"
    (tmp_path / "timestamp.txt").write_text(text)
    assert arrival.settle(tmp_path, arrival.arrival(tmp_path)) == ([], [])
    assert (tmp_path / "timestamp.txt").read_text() == text


@pytest.mark.parametrize("text", ["", "never", "99999999999999999999", "\x00"])
def test_a_timestamp_that_is_no_time_is_removed_and_the_learner_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text)
    assert arrival.settle(tmp_path, None) == (["The file timestamp.txt held no time; it was removed."], [])
    assert not (tmp_path / "timestamp.txt").exists()


def test_the_diff_shows_what_was_changed_added_and_deleted_in_what_was_handed_in(tmp_path: Path) -> None:
    root = tmp_path / "course"
    make_class(root)
    notebook = answered()
    notebook["cells"].remove(cell(notebook, "test-two"))
    notebook["cells"].append(code("print('\x1b[2J')"))
    write(root / "submitted" / "ada" / PS / f"{PS}.ipynb", notebook)
    before = show(root, PS, "ada")
    prepare(root, PS, "ada")
    assert show(root, PS, "ada") == before, "taking in restores cells; the diff still shows what was handed in"
    lines = before.split("\n")
    assert "+    return 2 * x" in lines
    assert "-    raise NotImplementedError()" in lines
    assert f"=== {PS}.ipynb, 'test-two': deleted" in lines
    assert "+print('?[2J')" in lines, "nothing that steers a terminal"
    hand_in(root, "bob", next(kind for kind in KINDS if kind.name == "not-json"))
    assert show(root, PS, "bob").startswith("ps.ipynb: it is not JSON")
    with pytest.raises(CourseError, match="eve has handed in nothing"):
        show(root, PS, "eve")
