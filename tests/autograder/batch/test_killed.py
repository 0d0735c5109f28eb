"""Grading that is killed at any change of a file or commit of the gradebook leaves a state that a rerun puts right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from killing import in_a_fork, killed_at
from klass import KINDS, PS, hand_in, make_class
from nbformat.v4 import new_output

from autograder.batch import batch
from autograder.course.gradebook import enrol
from autograder.run.execute import SandboxedExecute

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def known_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a kernel: one test failed. What a run of cells does is no change of a file of the course."""

    def preprocess(self: Any, nb: Any, resources: Any = None, km: Any = None) -> Any:
        for cell in nb.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == "test-two":
                cell.outputs = [new_output("error", ename="CheckError", evalue="double: 3 instead of 4", traceback=[])]
        nb.metadata["autograder"] = {"seed": 1, "cells": []}
        return nb, resources

    monkeypatch.setattr(SandboxedExecute, "preprocess", preprocess)


def grade(root: Path) -> None:
    result = batch.grade_one(batch.Task(root, PS, "ada"))
    assert result.score == 3, result.ungraded
    batch._remember(root, PS, "basis", result)


def state(root: Path) -> dict[str, Any]:
    """What counts afterwards: each file of the submission and its results, and the grades with their comments."""
    found: dict[str, Any] = {}
    for name in ("submitted", "autograded", "feedback", ".received"):
        for path in sorted((root / name).rglob("*")):
            if path.is_file():
                found[path.relative_to(root).as_posix()] = path.read_bytes()
    with batch._OPEN[root].gradebook as gradebook:
        submission = gradebook.find_submission(PS, "ada")
        for notebook in submission.notebooks:
            found |= {f"grade {one.name}": (one.score, one.needs_manual_grade) for one in notebook.grades}
            found |= {f"comment {one.name}": one.comment for one in notebook.comments}
    recalled = batch._recall(root, PS, "ada", "basis")
    return found | {"remembered": recalled is not None and recalled.score}


def test_killed_anywhere_a_rerun_gives_the_same_bytes_and_grades(
    tmp_path: Path, known_outcome: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "course"  # one place for all: a notebook's path is no part of the state
    api = make_class(root)
    monkeypatch.setitem(batch._OPEN, root, api)
    hand_in(root, "ada", KINDS[0])
    enrol(api, PS, ["ada"])
    assert in_a_fork(lambda: grade(root)) == 0
    path = next((root / "submitted" / "ada" / PS).glob("*.ipynb"))  # graded before, and handed in anew
    path.write_text(path.read_text(encoding="utf-8").replace("2 * x", "x + x"), encoding="utf-8")
    shutil.copytree(root, tmp_path / "before")
    assert in_a_fork(lambda: grade(root)) == 0
    right = state(root)
    assert (right["grade test-two"][0], right["remembered"]) == (0, 3)
    number = 1
    while True:
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "before", root)
        if not killed_at(number, root, number % 2 == 0, lambda: grade(root), (".autograder/locks", "nbgrader.log")):
            break
        assert in_a_fork(lambda: grade(root)) == 0
        assert state(root) == right, f"killed before change {number}"
        number += 1
    assert number >= 40  # changes of files and commits
