"""The roster: three formats of CSV, learners who join or leave in the middle of a term."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from traitlets.config import Config

from autograder.batch.export import Canvas
from autograder.course.course import CourseError
from autograder.course.gradebook import keep_between_submissions
from autograder.intake.dropped import dropped
from autograder.term.members import Changes, Member, drop, enrol, read_roster

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <")

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Warm-up (7)
    Points Possible,,,,,10
"Lovelace, Ada",17,s1,ada,A,
"Babbage, Charles",18,s2,charles,A,
"""
MOODLE = """First name,Last name,ID number,Institution,Email address
Ada,Lovelace,17,,ada@x.org
Charles,Babbage,,,charles@x.org
"""
PLAIN = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@x.org,17
charles,Charles,Babbage,,
"""


def roster(folder: Path, text: str) -> list[Member]:
    (folder / "roster.csv").write_text(text, encoding="utf-8-sig")
    return read_roster(folder / "roster.csv")


@pytest.fixture
def gradebook(tmp_path: Path) -> Iterator[Any]:
    keep_between_submissions()
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        yield book


def test_a_roster_of_canvas_has_logins_as_ids_and_leaves_the_line_of_points_out(tmp_path: Path) -> None:
    assert roster(tmp_path, CANVAS) == [
        Member("ada", {"first_name": "Ada", "last_name": "Lovelace", "lms_user_id": "17"}),
        Member("charles", {"first_name": "Charles", "last_name": "Babbage", "lms_user_id": "18"}),
    ]


def test_a_roster_of_moodle_has_the_address_before_the_at_as_id_where_no_user_name_is_shown(tmp_path: Path) -> None:
    ada = {"first_name": "Ada", "last_name": "Lovelace", "email": "ada@x.org", "lms_user_id": "17"}
    assert roster(tmp_path, MOODLE)[0] == Member("ada", ada)
    assert roster(tmp_path, "Username,First name,Surname,Email address\nal,Ada,Lovelace,ada@x.org\n")[0].id == "al"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,grade\nada,3\n", "names no columns of a roster"),
        ("", "names no columns of a roster"),
        ("id\nada\nada\n", "the id ada stands there twice"),
        ("id\nada\n../root\n", "learner 2: '../root' cannot be a learner's id"),
    ],
)
def test_a_file_that_is_no_roster_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CourseError, match=words):
        roster(tmp_path, text)


def test_a_second_roster_adds_changes_and_names_who_is_missing_and_removes_nobody(
    tmp_path: Path, gradebook: Any
) -> None:
    assert enrol(tmp_path, gradebook, roster(tmp_path, PLAIN)) == Changes(["ada", "charles"], [], [])
    later = roster(tmp_path, "id,first_name\nada,Augusta\ngrace,Grace\n")
    assert enrol(tmp_path, gradebook, later) == Changes(["grace"], ["ada"], ["charles"])
    ada = gradebook.find_student("ada")
    assert (ada.first_name, ada.email) == ("Augusta", "ada@x.org"), "what the second file does not know stays"
    assert {student.id for student in gradebook.students} == {"ada", "charles", "grace"}


def test_a_dropped_learner_is_in_no_export_and_comes_back_with_all_grades(tmp_path: Path, gradebook: Any) -> None:
    enrol(tmp_path, gradebook, roster(tmp_path, PLAIN))
    gradebook.add_assignment("warmup")
    gradebook.add_notebook("warmup", "warmup")
    gradebook.add_grade_cell("test", "warmup", "warmup", max_score=3, cell_type="code")
    gradebook.add_submission("warmup", "ada")
    grade = gradebook.find_grade("test", "warmup", "warmup", "ada")
    grade.auto_score, grade.needs_manual_grade = 2.0, False
    gradebook.db.commit()

    def exported() -> list[list[str]]:
        path = tmp_path / "canvas.csv"
        Canvas(to=str(path), config=Config({"CourseDirectory": {"root": str(tmp_path)}})).export(gradebook)
        with path.open(encoding="utf-8", newline="") as file:
            return [[row[2], row[4]] for row in list(csv.reader(file))[2:]]

    assert exported() == [["ada", "2"], ["charles", ""]]
    drop(tmp_path, gradebook, ["ada"])
    assert exported() == [["charles", ""]]
    assert enrol(tmp_path, gradebook, [Member("charles")]).missing == [], "a dropped learner is not missing"
    assert enrol(tmp_path, gradebook, [Member("ada")]).added == ["ada"]
    assert exported() == [["ada", "2"], ["charles", ""]]


def test_dropping_a_name_that_is_not_in_the_class_drops_nobody(tmp_path: Path, gradebook: Any) -> None:
    enrol(tmp_path, gradebook, roster(tmp_path, PLAIN))
    with pytest.raises(CourseError, match="not in the class: adda"):
        drop(tmp_path, gradebook, ["charles", "adda"])
    assert dropped(tmp_path) == set()
