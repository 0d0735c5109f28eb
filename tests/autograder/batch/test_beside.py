"""Submissions that must not be taken for one another, by two commands or by their names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from klass import KINDS, PS, ROOT, environment, hand_in, make_class

from autograder.commands.grade import Plan, grade_class
from autograder.course.course import Course, open_nbgrader
from autograder.intake.collect import original

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_an_instructor_may_type_nbgrader_autograde_while_a_batch_runs(tmp_path: Path) -> None:
    root = tmp_path / "course"
    make_class(root, PS)
    right = next(kind for kind in KINDS if kind.name == "right")
    students = [f"s{number}" for number in range(6)]
    for student in students:
        hand_in(root, student, right)
        for number in range(100):
            (root / "submitted" / student / PS / f"{number}.txt").write_text("x" * number)
    batch = [sys.executable, "-m", "autograder", "grade", PS, "--course", str(root), "--jobs", "2"]
    plain = [sys.executable, "-m", "nbgrader", "autograde", PS, "--force", "--create"]
    processes = []
    for number, (words, folder) in enumerate(((batch, ROOT), (plain, root), (plain, root))):
        with (tmp_path / f"{number}.log").open("w") as log:
            processes.append(subprocess.Popen(words, cwd=folder, env=environment(), stdout=log, stderr=log))
    for number, process in enumerate(processes):
        assert process.wait(timeout=500) == 0, (tmp_path / f"{number}.log").read_text()[-4000:]
    with open_nbgrader(Course(root), root).gradebook as gradebook:
        assert {name: gradebook.find_submission(PS, name).score for name in students} == dict.fromkeys(
            students, right.score
        )
    for student in students:
        kept = original(root, PS, student)
        assert kept is not None
        assert len(list(kept.iterdir())) == 101
        assert len(list((root / "submitted" / student / PS).iterdir())) == 101
        graded = json.loads((root / "autograded" / student / PS / f"{PS}.ipynb").read_text())
        assert graded["metadata"]["autograder"]["cells"]


@pytest.mark.filterwarnings("ignore:Object of type <Submitted")
def test_a_students_name_is_no_pattern(tmp_path: Path) -> None:
    root = tmp_path / "course"
    make_class(root, PS)
    kinds = {kind.name: kind for kind in KINDS}
    members = {"[ab]": "right", "a": "wrong", "x*y": "wrong", "xzy": "right"}
    for student, kind in members.items():
        hand_in(root, student, kinds[kind])
    graded = grade_class(root, PS, Plan(jobs=1), lambda text: None)
    assert {one.student: one.score for one in graded.results} == {
        student: kinds[kind].score for student, kind in members.items()
    }
    assert {path.parent.name for path in (root / "feedback").glob(f"*/{PS}")} == set(members)
