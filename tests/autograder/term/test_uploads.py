"""Zip files of submissions as Canvas and Moodle make them.

The names are those of canvas-lms (lib/content_zipper.rb) and of Moodle (mod/assign, "Download all submissions").
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from klass import PS, make_class
from small_course import answered

from autograder.course.course import CourseError
from autograder.intake.collect import original
from autograder.intake.dropped import write_dropped
from autograder.term.uploads import take

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <")

WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,\
Last modified (submission),Last modified (grade),Feedback comments
Participant 501,Ada Lovelace,ADA@x.org,Submitted for grading,,9.00,Yes,"Friday, 1 May 2026, 1:30 PM",-,
Participant 502,Ada Lovelace,ada2@x.org,Submitted for grading,,9.00,Yes,-,-,
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: Any) -> Any:
    return make_class(tmp_path_factory.mktemp("uploads") / "course")


@pytest.fixture
def root(course: Any) -> Iterator[Path]:
    folder = Path(course.coursedir.root)
    yield folder
    write_dropped(folder, [])


@pytest.fixture
def book(course: Any) -> Iterator[Any]:
    with course.gradebook as gradebook:
        for name, first, last, email, number in (
            ("ada", "Ada", "Lovelace", "ada@x.org", "17"),
            ("ada2", "Ada", "Lovelace", "ada2@x.org", "18"),
            ("jose", "José", "O'Neil", "", None),
        ):
            fields = {"first_name": first, "last_name": last, "email": email, "lms_user_id": number}
            gradebook.update_or_create_student(name, **fields)
        yield gradebook


def pack(folder: Path, *names: str, text: str = "") -> Path:
    path = folder / "submissions.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, text or json.dumps(answered()))
    return path


def test_canvas_files_go_to_the_learners_by_number_and_by_name_where_the_roster_has_no_number(
    root: Path, book: Any, tmp_path: Path
) -> None:
    archive = pack(tmp_path, "lovelaceada_17_9001_ps.ipynb", f"oneiljosé_LATE_44_9002_{PS}-1.ipynb")
    upload = take(root, book, PS, archive)
    assert upload.taken == ["ada", "jose"]
    assert (root / "submitted/ada" / PS / f"{PS}.ipynb").is_file()
    assert (root / "submitted/jose" / PS / f"{PS}.ipynb").is_file(), "Canvas's -1 is taken off"
    (late,) = [note for note in upload.notes if "late" in note]
    assert late.startswith("jose: Canvas marks it late and gives no time, so it counts as in time until you say")
    assert late.endswith("python -m autograder term time ps jose WHEN")


@pytest.mark.parametrize("between", ["/", ""])
def test_moodle_files_go_to_the_learners_with_the_time_of_the_worksheet(
    root: Path, book: Any, tmp_path: Path, between: str
) -> None:
    (tmp_path / "worksheet.csv").write_text(WORKSHEET, encoding="utf-8")
    archive = pack(
        tmp_path,
        f"Ada Lovelace_501_assignsubmission_file_{between}{PS}.ipynb",
        f"Ada Lovelace_502_assignsubmission_file_{between}{PS}.ipynb",
        f"José O'Neil_503_assignsubmission_file_{between}{PS}.ipynb",
    )
    upload = take(root, book, PS, archive, tmp_path / "worksheet.csv", ZoneInfo("Europe/Vienna"))
    assert upload.taken == ["ada", "ada2", "jose"]
    assert (root / "submitted/ada" / PS / "timestamp.txt").read_text() == "2026-05-01 11:30:00 UTC"
    assert not (root / "submitted/ada2" / PS / "timestamp.txt").exists()


def test_two_learners_of_one_name_are_not_guessed_at(root: Path, book: Any, tmp_path: Path) -> None:
    upload = take(root, book, PS, pack(tmp_path, f"Ada Lovelace_501_assignsubmission_file_/{PS}.ipynb"), None, UTC)
    assert upload.taken == []
    assert upload.notes == [
        "Ada Lovelace_501_assignsubmission_file_/ps.ipynb: nobody in the class is Ada Lovelace (number 501); "
        "it was left out"
    ]


def test_a_dropped_learner_and_a_stranger_are_left_out_by_name(root: Path, book: Any, tmp_path: Path) -> None:
    write_dropped(root, ["ada"])
    upload = take(root, book, PS, pack(tmp_path, f"lovelaceada_17_1_{PS}.ipynb", f"doejane_99_2_{PS}.ipynb"))
    assert upload.taken == []
    assert [note.partition(":")[0] for note in upload.notes] == [
        f"doejane_99_2_{PS}.ipynb",
        f"lovelaceada_17_1_{PS}.ipynb",
    ]


def test_a_second_upload_replaces_the_first_whose_original_is_kept(root: Path, book: Any, tmp_path: Path) -> None:
    take(root, book, PS, pack(tmp_path, f"lovelaceada_17_1_{PS}.ipynb"))
    first = original(root, PS, "ada")
    upload = take(root, book, PS, pack(tmp_path, f"lovelaceada_17_2_{PS}.ipynb", text='{"cells": ['))
    assert any("replaces what was handed in before" in note for note in upload.notes)
    assert any("it is not JSON" in note for note in upload.notes)
    assert first is not None
    assert first.is_dir()
    assert original(root, PS, "ada") != first


def test_a_zip_file_from_elsewhere_is_refused_and_nothing_is_taken_in(root: Path, book: Any, tmp_path: Path) -> None:
    with pytest.raises(
        CourseError, match=r"no download of submissions from Canvas or Moodle: its first file is notes\.txt"
    ):
        take(root, book, PS, pack(tmp_path, "notes.txt"))
    with pytest.raises(CourseError, match="there is no file"):
        take(root, book, PS, tmp_path / "nothing.zip")
    (tmp_path / "worksheet.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CourseError, match="no grading worksheet of Moodle"):
        take(root, book, PS, pack(tmp_path, "x"), tmp_path / "worksheet.csv")
