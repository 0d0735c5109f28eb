"""Autograde one collected submission with nbgrader, and read what it earned, cell by cell, with the reasons.

Every submission ends with a score or a named reason. What cannot be used (no JSON, no notebook, a link) was replaced by
a notebook without answers when it was taken in (collect.py); what cannot be graded at all gets 0 in the gradebook.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.course.course import CourseError, last_words
from autograder.intake import collect


@dataclass(frozen=True)
class CellScore:
    """What one graded cell earned; `score` is None while it waits to be graded by hand."""

    name: str
    score: float | None
    points: float
    reason: str = ""


@dataclass(frozen=True)
class Result:
    """One submission's grades. `problem` says why it could not be graded; `stopped` names cells that raised.

    `repairs` says what was put right or refused when it was taken in, `telemetry` what grading it took.
    """

    student: str
    score: float
    max_score: float
    cells: list[CellScore] = field(default_factory=list)
    problem: str = ""
    stopped: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    telemetry: dict[str, Any] = field(default_factory=dict)

    @property
    def by_hand(self) -> float:
        """Points that wait to be graded by hand."""
        return sum(cell.points for cell in self.cells if cell.score is None)

    @property
    def lost(self) -> list[CellScore]:
        return [cell for cell in self.cells if cell.score is not None and cell.score < cell.points]


def autograde(api: Any, assignment: str, student: str) -> Result:
    """Run nbgrader's autograde on one submission and read the result. CourseError if the assignment is not released."""
    try:
        report = collect.prepare(Path(api.coursedir.root), assignment, student)
    except collect.CollectError as error:
        raise CourseError(str(error)) from error
    outcome = api.autograde(assignment, student, force=True)
    if "KeyboardInterrupt" in (outcome.get("error") or ""):
        raise KeyboardInterrupt  # nbgrader's API swallows it
    problem = report.problem
    if not outcome["success"]:
        problem = f"autograding failed: {last_words(outcome)}"
        record_zero(api, assignment, student)
    return read(api, assignment, student, problem, [*report.refused, *report.repairs])


def read(api: Any, assignment: str, student: str, problem: str = "", repairs: Sequence[str] = ()) -> Result:
    """Read one submission's grades from the gradebook and the reasons from its autograded notebook."""
    cells: list[CellScore] = []
    stopped: list[str] = []
    telemetry: dict[str, Any] = {}
    with api.gradebook as gradebook:
        submission = gradebook.find_submission(assignment, student)
        # All cells at once: otherwise each grade asks for its own.
        cells_of = [notebook.grade_cells + notebook.task_cells for notebook in submission.assignment.notebooks]
        score, max_score = submission.score, submission.max_score
        for notebook in submission.notebooks:
            path = folder(api, "autograded_directory", assignment, student) / f"{notebook.name}.ipynb"
            errors, telemetry[notebook.name] = _graded(path)
            graded = {grade.name: grade for grade in notebook.grades}
            here = [f"cell {name} raised {error}" for name, error in errors.items() if name not in graded]
            for grade in graded.values():
                # As nbgrader does: a score given by hand comes before the automatic one, and extra credit is added.
                earned = None if grade.needs_manual_grade else grade.score
                reason = errors.get(grade.name, "").removeprefix("CheckError: ")
                if reason.startswith("NameError") and here and "(cell " not in reason:
                    reason += f" ({here[0]})"
                if not reason and earned == 0:
                    reason = "no answer was written"
                cells.append(CellScore(grade.name, earned, grade.max_score, reason))
            stopped += here
        del cells_of
    return Result(student, score, max_score, cells, problem, stopped, list(repairs), telemetry)


def folder(api: Any, step: str, assignment: str, student: str) -> Path:
    """The submission's folder in one of nbgrader's steps, such as `autograded_directory`."""
    return Path(api.coursedir.format_path(getattr(api.coursedir, step), student, assignment))


def _name(cell: Any) -> str:
    """The cell's nbgrader name; empty if it has none."""
    for key in ("metadata", "nbgrader", "grade_id"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, str) else ""


def _graded(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The error of each cell that ended in one, by the cell's name, in the notebook's order; and what grading took."""
    if not path.is_file():
        return {}, {}
    errors = {}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, cell in enumerate(notebook["cells"], start=1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                errors[_name(cell) or f"number {number}"] = f"{output['ename']}: {output['evalue']}".strip(": ")
    return errors, notebook["metadata"].get("autograder", {})


def record_zero(api: Any, assignment: str, student: str) -> None:
    """Give a submission that cannot be graded 0 in the gradebook, so that it is lost nowhere."""
    for step in ("autograded_directory", "feedback_directory"):
        shutil.rmtree(folder(api, step, assignment, student), ignore_errors=True)
    with api.gradebook as gradebook:
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(assignment, student)
        for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
            grade.auto_score, grade.needs_manual_grade = 0.0, False
        gradebook.db.commit()
