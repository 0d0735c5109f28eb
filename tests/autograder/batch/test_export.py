"""Grades for elsewhere, what lateness costs, and what a learner changed."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from klass import KINDS, PS, hand_in, make_class
from small_course import answered, cell, code, write
from traitlets.config import Config

from autograder.batch.export import Canvas, Moodle, PerQuestion
from autograder.batch.late import LatePolicy
from autograder.course import gradebook_cache as staying
from autograder.course.course import CourseError
from autograder.intake import arrival
from autograder.intake.collect import prepare
from autograder.intake.diff import show

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")


@pytest.fixture
def gradebook(tmp_path: Path) -> Iterator[Any]:
    """Ada has everything, 2 points late; Bob waits for his essay; Cy's name is a formula and he handed in nothing."""
    from nbgrader.api import Gradebook

    staying.settle()  # needs no program on PATH for a new gradebook
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        book.add_assignment("ps")
        book.add_notebook("ps", "ps")
        book.add_grade_cell("test-b", "ps", "ps", max_score=3, cell_type="code")
        book.add_grade_cell("test-a", "ps", "ps", max_score=2, cell_type="code")
        book.add_grade_cell("essay", "ps", "ps", max_score=4, cell_type="markdown")
        book.add_student("ada", first_name="Ada", last_name="Lovelace", email="ada@x.org", lms_user_id="17")
        book.add_student("bob", first_name="Bob", last_name="B, Jr")
        book.add_student("cy", last_name="=HYPERLINK(1)")
        for student, essay in (("ada", 3.5), ("bob", None)):
            submission = book.add_submission("ps", student)
            for name, points in (("test-a", 2.0), ("test-b", 1.0), ("essay", essay)):
                grade = book.find_grade(name, "ps", "ps", student)
                grade.needs_manual_grade = points is None
                if name == "essay":
                    grade.manual_score = points
                else:
                    grade.auto_score = points
            submission.notebooks[0].late_submission_penalty = 2.0 if student == "ada" else None
        book.db.commit()
        yield book


def rows(plugin: type, gradebook: Any, path: Path, **options: Any) -> list[list[str]]:
    plugin(to=str(path), **options).export(gradebook)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_every_question_has_a_column_and_what_waits_for_a_hand_is_empty(gradebook: Any, tmp_path: Path) -> None:
    assert rows(PerQuestion, gradebook, tmp_path / "out.csv") == [
        ["student_id", "last_name", "first_name", "email", "ps/ps/essay", "ps/ps/test-a", "ps/ps/test-b",
         "ps: late penalty", "ps: total"],
        ["maximum", "", "", "", "4", "2", "3", "", "9"],
        ["ada", "Lovelace", "Ada", "ada@x.org", "3.5", "2", "1", "2", "4.5"],
        ["bob", "B, Jr", "Bob", "", "", "2", "1", "0", ""],
        ["cy", "'=HYPERLINK(1)", "", "", "", "", "", "", ""],
    ]  # fmt: skip


def test_canvas_gets_its_columns_and_the_points_possible(gradebook: Any, tmp_path: Path) -> None:
    config = Config({"Canvas": {"columns": {"ps": "Problem set (99)"}}})
    assert rows(Canvas, gradebook, tmp_path / "out.csv", config=config) == [
        ["Student", "ID", "SIS Login ID", "Section", "Problem set (99)"],
        ["    Points Possible", "", "", "", "9"],
        ["Lovelace, Ada", "17", "ada", "", "4.5"],
        ["B, Jr, Bob", "", "bob", "", ""],
        ["'=HYPERLINK(1)", "", "cy", "", ""],
    ]


def test_moodle_gets_user_names_and_a_zero_for_what_is_missing_if_told_so(gradebook: Any, tmp_path: Path) -> None:
    config = Config({"Moodle": {"missing": "0"}})
    assert rows(Moodle, gradebook, tmp_path / "out.csv", config=config, student=["ada", "cy"]) == [
        ["Username", "ID number", "Email address", "First name", "Last name", "ps"],
        ["ada", "17", "ada@x.org", "Ada", "Lovelace", "4.5"],
        ["cy", "", "", "", "'=HYPERLINK(1)", "0"],
    ]


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


def test_a_learners_own_timestamp_does_not_make_a_late_submission_early(tmp_path: Path) -> None:
    folder = tmp_path / "inbound"
    folder.mkdir()
    (folder / "ps.ipynb").write_text("{}")
    (folder / "timestamp.txt").write_text("2020-01-01 00:00:00 UTC")
    for path in (folder / "timestamp.txt", folder / "ps.ipynb", folder):
        os.utime(path, (0, 0))  # a learner can set these
    seen = arrival.arrival(folder)
    assert seen is not None
    assert abs(seen - time.time()) < 60
    (note,) = arrival.settle(folder, seen)
    assert note.startswith("The time of the submission was given as 2020-01-01 00:00:00 UTC")
    said = datetime.fromisoformat((folder / "timestamp.txt").read_text().removesuffix(" UTC"))
    assert abs(said - datetime.now(UTC).replace(tzinfo=None)) < timedelta(minutes=2)


def test_the_time_that_nbgraders_submit_wrote_is_kept(tmp_path: Path) -> None:
    text = f"{datetime.now(UTC).replace(tzinfo=None)} UTC"
    (tmp_path / "timestamp.txt").write_text(text)
    assert arrival.settle(tmp_path, arrival.arrival(tmp_path)) == []
    assert (tmp_path / "timestamp.txt").read_text() == text


@pytest.mark.parametrize("text", ["", "never", "99999999999999999999", "\x00"])
def test_a_timestamp_that_is_no_time_is_removed_and_the_learner_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text)
    assert arrival.settle(tmp_path, None) == ["The file timestamp.txt held no time; it was removed."]
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
