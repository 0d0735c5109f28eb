"""Autograde one collected submission with nbgrader, and read what it earned, cell by cell, with the reasons.

Every submission ends with a score or a named reason. A file that cannot be used (no JSON, no notebook, a link) was
replaced by a notebook without answers when it was taken in (collect.py), so it scores 0. Where grading itself failed
there is no score: the gradebook keeps what it had, and `Result.ungraded` says why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.course.course import CourseError, last_words
from autograder.course.source import grade_id
from autograder.intake import collect

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI


@dataclass(frozen=True)
class CellScore:
    """What one graded cell earned; `score` is None while there is no grade yet.

    `by_hand` says that a grader has to look at it: for the first time, or again since the answer has changed.
    """

    name: str
    score: float | None
    points: float
    reason: str = ""
    by_hand: bool = False


@dataclass(frozen=True)
class Result:
    """One submission's grades: `score` points of `max_score`, of which lateness costs `penalty`.

    `problem` says why what was handed in counts as not answered. `ungraded` says why grading failed: then `score` is
    what an earlier run gave, or None. `stopped` names cells that raised, `repairs` says what was put right or refused
    when it was taken in and what a grader should know, `telemetry` what grading it took. `graded` is a hash of the
    submission that was graded.
    """

    student: str
    score: float | None
    max_score: float
    cells: list[CellScore] = field(default_factory=list)
    problem: str = ""
    stopped: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    telemetry: dict[str, Any] = field(default_factory=dict)
    penalty: float = 0.0
    ungraded: str = ""
    graded: str = ""

    @property
    def total(self) -> float | None:
        """Points after lateness; None if there are none."""
        return None if self.score is None else self.score - self.penalty

    @property
    def by_hand(self) -> float:
        """Points that wait to be graded by hand."""
        return sum(cell.points for cell in self.cells if cell.by_hand)

    @property
    def lost(self) -> list[CellScore]:
        return [cell for cell in self.cells if cell.score is not None and cell.score < cell.points]


def autograde(api: NbGraderAPI, assignment: str, student: str) -> Result:
    """Run nbgrader's autograde on one submission and read the result. CourseError if the assignment is not released."""
    try:
        report = collect.prepare(Path(api.coursedir.root), assignment, student)
    except collect.CollectError as error:
        raise CourseError(str(error)) from error
    outcome = api.autograde(assignment, student, force=True)
    if "KeyboardInterrupt" in (outcome.get("error") or ""):
        raise KeyboardInterrupt  # nbgrader's API swallows it
    if not outcome["success"]:
        return Result(student, None, 0.0, ungraded=f"autograding failed: {last_words(outcome)}")
    return read(api, assignment, student, report.problem, [*report.refused, *report.repairs, *report.doubts])


def read(
    api: NbGraderAPI, assignment: str, student: str, problem: str = "", repairs: Sequence[str] = (), ungraded: str = ""
) -> Result:
    """Read one submission's grades from the gradebook and the reasons from its autograded notebook."""
    from autograder.course.gradebook import open_gradebook
    from autograder.course.hand_grades import asks_again_words
    from autograder.course.points import Points, asks_again, never_graded, waits

    points = Points(config=api.config)
    cells: list[CellScore] = []
    stopped: list[str] = []
    again: list[str] = []
    telemetry: dict[str, Any] = {}
    with open_gradebook(api.coursedir) as gradebook:
        submission = gradebook.find_submission(assignment, student)
        # All cells at once: otherwise each grade asks for its own.
        cells_of = [notebook.grade_cells + notebook.task_cells for notebook in submission.assignment.notebooks]
        score = None if never_graded(submission) else submission.score
        max_score, penalty = points.maximum(submission.assignment), points.penalty(submission)
        for notebook in submission.notebooks:
            path = folder(api, "autograded_directory", assignment, student) / f"{notebook.name}.ipynb"
            errors, telemetry[notebook.name] = _graded(path)
            graded = {grade.name: grade for grade in notebook.grades}
            here = [f"cell {name} raised {error}" for name, error in errors.items() if name not in graded]
            for grade in graded.values():
                # As nbgrader does: a score given by hand comes before the automatic one, and extra credit is added.
                earned = None if waits(grade) else grade.score
                reason = errors.get(grade.name, "").removeprefix("CheckError: ")
                if reason.startswith("NameError") and here and "(cell " not in reason:
                    reason += f" ({here[0]})"
                if not reason and earned == 0:
                    reason = "no answer was written"
                cells.append(CellScore(grade.name, earned, grade.max_score, reason, bool(grade.needs_manual_grade)))
                if asks_again(grade):
                    again.append(asks_again_words(grade))
            stopped += here
        del cells_of
    repairs = [*repairs, *again]
    return Result(student, score, max_score, cells, problem, stopped, repairs, telemetry, penalty, ungraded)


def folder(api: NbGraderAPI, step: str, assignment: str, student: str) -> Path:
    """The submission's folder in one of nbgrader's steps, such as `autograded_directory`."""
    return Path(api.coursedir.format_path(getattr(api.coursedir, step), student, assignment))


def _graded(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The error of each cell that ended in one, by the cell's name, in the notebook's order; and what grading took."""
    if not path.is_file():
        return {}, {}
    errors = {}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, cell in enumerate(notebook["cells"], start=1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                errors[grade_id(cell) or f"number {number}"] = f"{output['ename']}: {output['evalue']}".strip(": ")
    return errors, notebook["metadata"].get("autograder", {})
