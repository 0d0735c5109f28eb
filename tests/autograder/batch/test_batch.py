"""A whole class: nobody lost, nothing outside the scratch touched, parallel as in series, resumable, never mixed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from klass import (
    CANARY,
    KINDS,
    PS,
    ROOT,
    Kind,
    copy_class,
    fill,
    hand_in,
    make_class,
    seen_by_learners,
    telemetry,
    tree,
)

from autograder.batch.batch import slow_imports
from autograder.batch.scores import Result
from autograder.commands.grade import Graded, Plan, grade_class, summary
from autograder.course.course import CourseError

SIZE = int(os.environ.get("AUTOGRADER_CLASS", "24"))  # each kind once; AUTOGRADER_CLASS=200 for the long run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first test pays for grading the class, also on a busy machine
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


@dataclass
class Klass:
    root: Path
    outside: Path
    members: dict[str, Kind]
    before: dict[str, str]
    graded: Graded

    @property
    def results(self) -> dict[str, Result]:
        return {result.student: result for result in self.graded.results}


@pytest.fixture(scope="module")
def klass(tmp_path_factory: pytest.TempPathFactory) -> Klass:
    folder = tmp_path_factory.mktemp("class")
    root, outside = folder / "course", folder / "outside"
    make_class(root)
    members = fill(root, SIZE)
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    (outside / "note").write_text("mine")
    (outside / "note").chmod(0o666)
    before = tree(*_not_to_be_touched(root, outside))
    return Klass(root, outside, members, before, grade_class(root, PS, Plan(), say=lambda text: None))


def _not_to_be_touched(root: Path, outside: Path) -> list[Path]:
    return [
        root / "source",
        root / "release",
        root / "nbgrader_config.py",
        outside,
        ROOT / "autograder/feedback/templates",
    ]


def test_every_submission_has_the_score_that_its_kind_deserves(klass: Klass) -> None:
    assert list(klass.results) == sorted(klass.members)
    got = {name: (result.score, result.max_score) for name, result in klass.results.items()}
    assert got == {name: (kind.score, 9) for name, kind in klass.members.items()}


def test_every_point_lost_has_a_reason_in_words(klass: Klass) -> None:
    for name, result in klass.results.items():
        kind = klass.members[name]
        said = " ".join([result.problem, *result.stopped, *(f"{cell.name}: {cell.reason}" for cell in result.lost)])
        assert kind.words in said, name
        assert all(cell.reason for cell in result.lost), name


def test_repairs_are_told_to_the_instructor_and_to_the_learner(klass: Klass) -> None:
    repaired = {
        "renamed": "was called",
        "test-deleted": "'test-two' was missing",
        "link-to-the-source": "symbolic link",
    }
    for name, kind in klass.members.items():
        if kind.name in repaired:
            page = (klass.root / "feedback" / name / PS / f"{PS}.html").read_text(encoding="utf-8")
            assert repaired[kind.name] in " ".join(klass.results[name].repairs)
            assert repaired[kind.name] in page


def test_no_file_outside_the_scratch_has_changed(klass: Klass) -> None:
    assert tree(*_not_to_be_touched(klass.root, klass.outside)) == klass.before
    assert not any(Path(name).exists() for name in ("/tmp/owned", "/marker", "/root/owned"))


def test_no_hidden_test_is_in_anything_that_a_learner_sees(klass: Klass) -> None:
    pages = seen_by_learners(klass.root)
    assert len(pages) > 10_000
    assert CANARY not in pages


def test_the_summary_names_everybody_with_a_reason(klass: Klass) -> None:
    rows = summary(klass.graded).splitlines()[1:]
    assert [row.split()[0] for row in rows] == list(klass.results)
    assert all(len(row.split()) > 4 for row in rows), "a row without a reason"


def test_telemetry_has_wall_and_processor_time_and_peak_memory_of_each_cell(klass: Klass) -> None:
    lines = telemetry(klass.root)
    cells = [line for line in lines if "name" in line]
    assert {line["student"] for line in lines} == set(klass.members)
    assert all(line["seconds"] >= 0 and line["cpu_seconds"] >= 0 for line in cells)
    ran = [line for line in cells if line["name"] == "double" and line["student"].endswith("-right")]
    assert ran
    assert all(line["memory_peak"] > 10e6 for line in ran), "an interpreter has more than 10 MB"
    hung = next(line for line in cells if line["student"].endswith("-hangs") and line["name"] == "test-two")
    assert hung["seconds"] >= 4, "the time-out of this course"


def test_grading_again_grades_nothing_and_says_the_same(klass: Klass) -> None:
    said: list[str] = []
    again = grade_class(klass.root, PS, Plan(), said.append)
    assert said == []
    assert [(one.student, one.score, one.problem) for one in again.results] == [
        (one.student, one.score, one.problem) for one in klass.graded.results
    ]


def test_a_grade_given_by_hand_stays_when_everything_is_graded_again(klass: Klass, tmp_path: Path) -> None:
    root = copy_class(klass.root, tmp_path / "course")
    keep = [name for name, kind in klass.members.items() if kind.name in ("right", "half")][:2]
    for folder in (root / "submitted").iterdir():
        if folder.name not in keep:
            shutil.rmtree(folder)
    first = {result.student: result for result in grade_class(root, PS, Plan(jobs=1), lambda text: None).results}
    assert {name: (one.score, one.by_hand) for name, one in first.items()} == {keep[0]: (5, 4), keep[1]: (2, 4)}
    _give(root, keep[0], "essay", 3)
    _give(root, keep[1], "test-minus-one", 1.5)
    said: list[str] = []
    again = {one.student: one for one in grade_class(root, PS, Plan(force=True), said.append).results}
    assert sum("autograde" in line for line in said) == 2
    assert again[keep[0]].score == 5 + 3
    assert again[keep[1]].score == 2 + 1.5


def test_in_series_the_class_scores_as_it_did_in_parallel(klass: Klass, tmp_path: Path) -> None:
    root = copy_class(klass.root, tmp_path / "course")
    for number, folder in enumerate(sorted((root / "submitted").iterdir())):
        if number >= len(KINDS) or number % 3 != 1:  # every third kind
            shutil.rmtree(folder)
    serial = grade_class(root, PS, Plan(jobs=1), lambda text: None).results
    assert len(serial) == 8
    for one in serial:
        other = klass.results[one.student]
        assert (one.score, one.problem, [(c.name, c.score, c.reason) for c in one.cells]) == (
            other.score, other.problem, [(c.name, c.score, c.reason) for c in other.cells],
        )  # fmt: skip


def test_a_course_without_the_sandbox_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    write_plain_course(tmp_path)
    with pytest.raises(CourseError, match=r"does not switch the sandbox on; it lacks: c.Execute.kernel_name"):
        grade_class(tmp_path, PS, Plan(), lambda text: None)


def test_a_class_that_handed_in_nothing_is_told_how_to_collect(tmp_path: Path) -> None:
    make_class(tmp_path / "course")
    with pytest.raises(CourseError, match=f"nothing is collected.*nbgrader collect {PS}"):
        grade_class(tmp_path / "course", PS, Plan(), lambda text: None)


def test_a_second_batch_on_the_same_assignment_is_refused(klass: Klass) -> None:
    from autograder.batch.batch import _alone

    with _alone(klass.root.resolve(), PS), pytest.raises(CourseError, match="is being graded by another batch"):
        grade_class(klass.root, PS, Plan(), lambda text: None)


def write_plain_course(root: Path) -> None:
    make_class(root / "made")
    shutil.copytree(root / "made" / "source", root / "source")
    hand_in(root, "ada", KINDS[0])
    (root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'plain'\n")


def _give(root: Path, student: str, cell: str, points: float) -> None:
    """What formgrader does when a grader types a score."""
    from autograder.course.course import Course, open_nbgrader

    api: Any = open_nbgrader(Course(root), root)
    with api.gradebook as gradebook:
        grade = gradebook.find_grade(cell, PS, PS, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nimport torch\n",
        ["import numpy as np\n", "import torch\n"],
        "import numpy, torch",
        "if True:\n    from numpy import array\nfrom torch.nn import functional",
    ],
)
def test_what_takes_long_to_import_is_found_however_the_notebook_is_written(tmp_path: Path, source: Any) -> None:
    folder = tmp_path / "submitted" / "ada" / "ps"
    folder.mkdir(parents=True)
    cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
    (folder / "ps.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert slow_imports(tmp_path, "ps") == ["numpy", "torch"]
