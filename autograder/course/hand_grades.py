"""Keeps a grade given by hand final for as long as the answer that it judged stays the same.

nbgrader asks graders again after every autograding. Here each autograding notes a hash of every graded answer, in
`.autograder/answers` of the course; the next one compares. An unchanged answer keeps its points, its comment and its
state, whatever else changed: tests, configuration, other answers. A changed one is put before a grader again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode
from nbgrader import utils
from nbgrader.api import Grade
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from autograder.course.gradebook import Grades, open_gradebook
from autograder.course.points import course_directory

_FOLDER = Path(".autograder") / "answers"


class SaveGrades(SaveAutoGrades):
    """nbgrader's SaveAutoGrades that leaves grades by hand alone where the answer has not changed."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Write the notebook's automatic grades into the gradebook, all of them or none."""
        about = resources["nbgrader"]
        self.assignment_id, self.notebook_id, self.student_id = (
            about[key] for key in ("assignment", "notebook", "student")
        )
        course = course_directory(self)
        record = Path(course.root) / _FOLDER / self.assignment_id / self.student_id / f"{self.notebook_id}.json"
        self._before, self._now = _load(record), answers(nb)
        with open_gradebook(course, Grades) as self.gradebook:
            nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
        # Written after the gradebook: if this is never reached, the next autograding asks once too often, never too
        # seldom.
        _save(record, self._now)
        return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if utils.is_task(cell):
            self._ask_again_if_changed(self._grade(cell))
        return cell, resources

    def _add_score(self, cell: NotebookNode, resources: ResourcesDict) -> None:
        grade = self._grade(cell)
        grade.auto_score, _ = utils.determine_grade(cell, self.log)
        if grade.manual_score is None:
            grade.needs_manual_grade = grade.auto_score is None
        else:
            self._ask_again_if_changed(grade)
        self.gradebook.db.commit()

    def _ask_again_if_changed(self, grade: Grade) -> None:
        if grade.manual_score is None or self._before.get(grade.name) == self._now[grade.name]:
            return
        grade.needs_manual_grade = True
        self.log.warning("%s: %s", self.student_id, asks_again_words(grade))

    def _grade(self, cell: NotebookNode) -> Grade:
        name = cell.metadata["nbgrader"]["grade_id"]
        return self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)


def asks_again_words(grade: Grade) -> str:
    """What a grader is told of an answer that has changed since it was graded by hand."""
    points = f"{grade.manual_score:g} of {grade.max_score:g}"
    return f"the answer {grade.name} has changed since it was graded by hand ({points}): please grade it again"


def answers(notebook: NotebookNode) -> dict[str, str]:
    """A hash of what a grader judges at each graded cell.

    For an answer cell that is its text and the learner's own cells below it. A test or a task is judged by all that the
    learner wrote in the notebook.
    """
    found: dict[str, list[object]] = {}
    everything: list[object] = []
    current: list[object] = []
    for cell in notebook.cells:
        ours = "nbgrader" in cell.metadata and "grade_id" in cell.metadata["nbgrader"]
        written = [cell.cell_type, cell.source.replace("\r\n", "\n").rstrip(), cell.get("attachments", {})]
        if ours:
            current = []
        if utils.is_solution(cell) or (not ours and cell.get("id") != "collected-note"):
            everything.append(written)
            current.append(written)
        if utils.is_grade(cell) or utils.is_task(cell):
            judged_here = utils.is_solution(cell) and not utils.is_task(cell)
            found[cell.metadata["nbgrader"]["grade_id"]] = current if judged_here else everything
    return {name: hashlib.sha256(json.dumps(text).encode()).hexdigest() for name, text in found.items()}


def _load(record: Path) -> dict[str, str]:
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _save(record: Path, found: dict[str, str]) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    fresh = record.with_name(f"{record.name}-{os.getpid()}.tmp")
    fresh.write_text(json.dumps(found, indent=1), encoding="utf-8")
    os.replace(fresh, record)
