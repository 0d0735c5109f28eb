"""Grades for elsewhere: a table with every question, and the files that Canvas and Moodle import.

All are plugins of `nbgrader export`, which takes `--to`, `--assignment` and `--student`:

    nbgrader export --exporter=autograder.export.PerQuestion --to=questions.csv
    nbgrader export --exporter=autograder.export.Canvas --to=canvas.csv
    nbgrader export --exporter=autograder.export.Moodle --to=moodle.csv

What waits to be graded by hand is left empty, so that nothing half graded reaches a learner; so is what was not handed
in, unless `missing` says otherwise.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry
from nbgrader.plugins import ExportPlugin
from traitlets import Dict, Unicode

Rows = Iterator[list[Any]]


class _Table(ExportPlugin):
    """Writes `rows` as CSV that a spreadsheet takes for text and numbers, never for formulas."""

    name = "grades.csv"
    missing = Unicode("", help="What stands where nothing was handed in, for example 0.").tag(config=True)

    def export(self, gradebook: Any) -> None:
        """Write the file. Raises ValueError, naming them, for assignments or students that the gradebook lacks."""
        known = {assignment.name for assignment in gradebook.assignments}
        if unknown := [name for name in self.assignment if name not in known]:
            raise ValueError(f"no assignment {', '.join(unknown)} in the gradebook; known: {', '.join(sorted(known))}")
        students = {student.id for student in gradebook.students}
        if unknown := [name for name in self.student if str(name) not in students]:
            raise ValueError(f"no student {', '.join(map(str, unknown))} in the gradebook")
        path = Path(self.to or self.name)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([_safe(value) for value in row] for row in self.rows(gradebook))
        self.log.info("Exported to %s", path)

    def rows(self, gradebook: Any) -> Rows:
        raise NotImplementedError

    def assignments(self, gradebook: Any) -> list[Any]:
        wanted = set(self.assignment)
        return [one for one in gradebook.assignments if not wanted or one.name in wanted]

    def students(self, gradebook: Any) -> list[Any]:
        wanted = {str(name) for name in self.student}
        return sorted(
            (one for one in gradebook.students if not wanted or one.id in wanted), key=lambda one: str(one.id)
        )

    def total(self, gradebook: Any, assignment: str, student: str) -> Any:
        """Points after late penalties, as nbgrader counts; what stands in their place while there are none."""
        try:
            submission = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return self.missing
        return "" if submission.needs_manual_grade else _number(max(submission.score - _penalty(submission), 0))


class PerQuestion(_Table):
    """One line for each student, one column for each question of each assignment."""

    name = "questions.csv"

    def rows(self, gradebook: Any) -> Rows:
        assignments = self.assignments(gradebook)
        questions = [
            (assignment.name, notebook.name, cell.name, cell.max_score)
            for assignment in assignments
            for notebook in assignment.notebooks
            for cell in sorted([*notebook.grade_cells, *notebook.task_cells], key=lambda cell: str(cell.name))
        ]
        totals = [f"{one.name}: {what}" for one in assignments for what in ("late penalty", "total")]
        yield [*_WHO, *(f"{assignment}/{book}/{cell}" for assignment, book, cell, _ in questions), *totals]
        yield ["maximum", "", "", "", *(_number(points) for *_, points in questions), *self._maxima(assignments)]
        for student in self.students(gradebook):
            scores = {}
            ends: list[Any] = []
            for assignment in assignments:
                try:
                    submission = gradebook.find_submission(assignment.name, student.id)
                except MissingEntry:
                    ends += ["", self.missing]
                    continue
                for notebook in submission.notebooks:
                    for grade in notebook.grades:
                        waits = grade.needs_manual_grade and grade.manual_score is None
                        scores[assignment.name, notebook.name, grade.name] = "" if waits else _number(grade.score)
                ends += [_number(_penalty(submission)), self.total(gradebook, assignment.name, student.id)]
            row = [scores.get((assignment, book, cell), self.missing) for assignment, book, cell, _ in questions]
            yield [*_who(student), *row, *ends]

    @staticmethod
    def _maxima(assignments: list[Any]) -> list[Any]:
        return [value for one in assignments for value in ("", _number(one.max_score))]


class Canvas(_Table):
    """Canvas, "Grades", "Import": students are found by `ID` (nbgrader's lms_user_id) or by their login."""

    name = "canvas.csv"
    columns = Dict(
        help="assignment -> Canvas's name of its column, with its number: 'Problem set 3 (1234)'. Without a number "
        "Canvas asks which assignment is meant."
    ).tag(config=True)

    def rows(self, gradebook: Any) -> Rows:
        assignments = self.assignments(gradebook)
        yield [
            "Student", "ID", "SIS Login ID", "Section", *(self.columns.get(one.name, one.name) for one in assignments)
        ]  # fmt: skip
        yield ["    Points Possible", "", "", "", *(_number(one.max_score) for one in assignments)]
        for student in self.students(gradebook):
            shown = ", ".join(filter(None, (student.last_name, student.first_name))) or student.id
            grades = (self.total(gradebook, one.name, student.id) for one in assignments)
            yield [shown, student.lms_user_id or "", student.id, "", *grades]


class Moodle(_Table):
    """Moodle, "Grades", "Import", "CSV file": map the user by `Username` or `Email address`."""

    name = "moodle.csv"

    def rows(self, gradebook: Any) -> Rows:
        assignments = self.assignments(gradebook)
        yield ["Username", "ID number", "Email address", "First name", "Last name", *(one.name for one in assignments)]
        for student in self.students(gradebook):
            grades = (self.total(gradebook, one.name, student.id) for one in assignments)
            who = [student.id, student.lms_user_id or "", student.email or ""]
            yield [*who, student.first_name or "", student.last_name or "", *grades]


_WHO = ["student_id", "last_name", "first_name", "email"]


def _who(student: Any) -> list[str]:
    return [student.id, student.last_name or "", student.first_name or "", student.email or ""]


def _penalty(submission: Any) -> float:
    return float(submission.late_submission_penalty or 0)


def _number(value: float | None) -> float | int | str:
    """A number without a needless fraction."""
    if value is None:
        return ""
    return int(value) if float(value).is_integer() else round(float(value), 4)


def _safe(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
