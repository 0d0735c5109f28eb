"""What a submission is worth now: its points, what lateness costs, the maximum, and what still waits for a grader.

Every place where grades leave the gradebook (exports, feedback pages, the summary) asks here. nbgrader stores a late
penalty when it autogrades; later points by hand, a moved due date and an extension would escape that, so the penalty
is computed from the gradebook as it is at this moment. Bonus cells add to the score and never to the maximum.
"""

from __future__ import annotations

import hashlib
import json
from fnmatch import fnmatchcase
from pathlib import Path

from nbgrader.api import Assignment, Grade, SubmittedAssignment, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Dict
from traitlets.config import Configurable, LoggingConfigurable


class Points(LoggingConfigurable):
    """The rules of a course, as its configuration states them now."""

    bonus = Dict(
        help="assignment -> names of the graded cells that are a bonus; * stands for any letters. Their points add to "
        "the score and not to the maximum."
    ).tag(config=True)

    def maximum(self, assignment: Assignment) -> float:
        """Points for full marks: those of all graded cells but the bonus."""
        return sum(self._maximum(assignment.name, notebook) for notebook in assignment.notebooks)

    def notebook_maximum(self, notebook: SubmittedNotebook) -> float:
        """Points for full marks of one notebook of a submission."""
        return self._maximum(notebook.assignment.name, notebook.notebook)

    def penalty(self, submission: SubmittedAssignment) -> float:
        """Points that lateness costs, over automatic points and those given by hand."""
        return sum(self.notebook_penalty(notebook) for notebook in submission.notebooks)

    def notebook_penalty(self, notebook: SubmittedNotebook) -> float:
        """Points that lateness costs one notebook of a submission; never more than it has."""
        submission = notebook.assignment
        if submission.assignment.duedate is None or (late := submission.total_seconds_late) <= 0:
            return 0.0
        policy = AssignLatePenalties(config=self.config).plugin_class(parent=self)
        cost = policy.late_submission_penalty(submission.student.id, notebook.score, late)
        return min(max(float(cost or 0.0), 0.0), float(notebook.score))

    def total(self, submission: SubmittedAssignment) -> float | None:
        """Points after lateness; None while a part of them waits for a grader."""
        if any(waits(grade) for grade in grades(submission)):
            return None
        return float(submission.score) - self.penalty(submission)

    def state(self, notebook: SubmittedNotebook, graded: Path) -> str:
        """A hash of all that a feedback page tells: grades, comments, lateness, and the graded notebook itself."""
        told = [
            [(one.name, one.score, one.max_score, waits(one)) for one in sorted(notebook.grades, key=_name)],
            [(one.name, one.comment) for one in sorted(notebook.comments, key=_name)],
            self.notebook_penalty(notebook),
            self.notebook_maximum(notebook),
        ]
        digest = hashlib.sha256(json.dumps(told).encode())
        digest.update(graded.read_bytes() if graded.is_file() else b"")
        return digest.hexdigest()

    def _maximum(self, assignment: str, notebook: object) -> float:
        patterns = self.bonus.get(assignment, [])
        cells = [*notebook.grade_cells, *notebook.task_cells]  # type: ignore[attr-defined]  # a row of nbgrader's
        return float(sum(cell.max_score for cell in cells if not any(fnmatchcase(cell.name, one) for one in patterns)))


def grades(submission: SubmittedAssignment) -> list[Grade]:
    """All grades of a submission, one for each graded cell."""
    return [grade for notebook in submission.notebooks for grade in notebook.grades]


def waits(grade: Grade) -> bool:
    """Whether there is no grade yet: a grader has to give one, or the cell was never autograded."""
    return bool(grade.needs_manual_grade) and grade.manual_score is None and grade.auto_score is None


def asks_again(grade: Grade) -> bool:
    """Whether the answer has changed since a grader judged it. The grader's points stand until then."""
    return bool(grade.needs_manual_grade) and grade.manual_score is not None


def never_graded(submission: SubmittedAssignment) -> bool:
    """Whether the submission has no grade at all, neither automatic nor by hand."""
    return all(grade.auto_score is None and grade.manual_score is None for grade in grades(submission))


def course_directory(part: Configurable) -> CourseDirectory:
    """The course directory that a part of nbgrader works in: that of the nearest owner which has one."""
    owner: object = part
    while owner is not None:
        if isinstance(found := getattr(owner, "coursedir", None), CourseDirectory):
            return found
        owner = getattr(owner, "parent", None)
    return CourseDirectory(config=part.config)


def _name(row: Grade) -> str:
    return str(row.name)
