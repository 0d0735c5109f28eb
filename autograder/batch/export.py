"""Grades for elsewhere: nbgrader's own table, one with every question, and the files that Canvas and Moodle import.

All are plugins of `nbgrader export`, which takes `--to`, `--assignment` and `--student`:

    nbgrader export --to=grades.csv
    nbgrader export --exporter=autograder.export.PerQuestion --to=questions.csv
    nbgrader export --exporter=autograder.export.Canvas --to=canvas.csv
    nbgrader export --exporter=autograder.export.Moodle --to=moodle.csv

Lateness is taken from the points as they are at the time of the export, and bonus cells are no part of the maximum
(points.py). A total is left empty while a part of it waits for its first grade, so that nothing half graded reaches a
learner; so is what was not handed in, unless `missing` says otherwise.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, MissingEntry, Student, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from traitlets import Dict, Unicode

from autograder.course.points import Points, course_directory, never_graded, waits
from autograder.intake.dropped import dropped

Cell = float | int | str
Rows = Iterator[list[Cell]]


class _Table(ExportPlugin):
    """Writes `rows` as CSV that a spreadsheet takes for text and numbers, never for formulas."""

    name = "grades.csv"
    missing = Unicode("", help="What stands where nothing was handed in, for example 0.").tag(config=True)

    def export(self, gradebook: Gradebook) -> None:
        """Write the file. Raises ValueError, naming them, for assignments or students that the gradebook lacks."""
        known = {assignment.name for assignment in gradebook.assignments}
        if unknown := [name for name in self.assignment if name not in known]:
            raise ValueError(f"no assignment {', '.join(unknown)} in the gradebook; known: {', '.join(sorted(known))}")
        students = {student.id for student in gradebook.students}
        if unknown := [name for name in self.student if str(name) not in students]:
            raise ValueError(f"no student {', '.join(map(str, unknown))} in the gradebook")
        self.points = Points(parent=self)
        path = Path(self.to or self.name)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([_safe(value) for value in row] for row in self.rows(gradebook))
        self.log.info("Exported to %s", path)

    def rows(self, gradebook: Gradebook) -> Rows:
        raise NotImplementedError

    def assignments(self, gradebook: Gradebook) -> list[Assignment]:
        wanted = set(self.assignment)
        return [one for one in gradebook.assignments if not wanted or one.name in wanted]

    def students(self, gradebook: Gradebook) -> list[Student]:
        wanted, gone = {str(name) for name in self.student}, dropped(Path(course_directory(self).root))
        found = [one for one in gradebook.students if (one.id in wanted if wanted else one.id not in gone)]
        return sorted(found, key=lambda one: str(one.id))

    def total(self, gradebook: Gradebook, assignment: str, student: str) -> Cell:
        """Points after lateness; what stands in their place while there are none."""
        submission = _submission(gradebook, assignment, student)
        return self.missing if submission is None else _number(self.points.total(submission))


class Grades(_Table):
    """nbgrader's own table, with lateness, the maximum and what has no grade yet as they are now."""

    def rows(self, gradebook: Gradebook) -> Rows:
        yield [
            "assignment", "duedate", "timestamp", *_WHO, "raw_score", "late_submission_penalty", "score", "max_score"
        ]  # fmt: skip
        for assignment in self.assignments(gradebook):
            maximum = self.points.maximum(assignment)
            for student in self.students(gradebook):
                submission = _submission(gradebook, assignment.name, student.id)
                when = "" if submission is None else str(submission.timestamp or "")
                about = [assignment.name, str(assignment.duedate or ""), when, *_who(student)]
                yield [*about, *self._points(submission), maximum]

    def _points(self, submission: SubmittedAssignment | None) -> list[Cell]:
        """Points before lateness, what it costs, and the rest; nbgrader counts nothing handed in as 0."""
        if submission is None:
            return [0.0, 0.0, 0.0]
        if never_graded(submission):
            return ["", "", ""]
        penalty = self.points.penalty(submission)
        return [round(points, 4) for points in (submission.score, penalty, submission.score - penalty)]


class PerQuestion(_Table):
    """One line for each student, one column for each question of each assignment."""

    name = "questions.csv"

    def rows(self, gradebook: Gradebook) -> Rows:
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
            scores: dict[tuple[str, str, str], Cell] = {}
            ends: list[Cell] = []
            for assignment in assignments:
                submission = _submission(gradebook, assignment.name, student.id)
                if submission is None:
                    ends += ["", self.missing]
                    continue
                for notebook in submission.notebooks:
                    for grade in notebook.grades:
                        shown = "" if waits(grade) else _number(grade.score)
                        scores[assignment.name, notebook.name, grade.name] = shown
                ends += [_number(self.points.penalty(submission)), _number(self.points.total(submission))]
            row = [scores.get((assignment, book, cell), self.missing) for assignment, book, cell, _ in questions]
            yield [*_who(student), *row, *ends]

    def _maxima(self, assignments: list[Assignment]) -> list[Cell]:
        return [value for one in assignments for value in ("", _number(self.points.maximum(one)))]


class Canvas(_Table):
    """Canvas, "Grades", "Import": students are found by `ID` (nbgrader's lms_user_id) or by their login."""

    name = "canvas.csv"
    columns = Dict(
        help="assignment -> Canvas's name of its column, with its number: 'Problem set 3 (1234)'. Without a number "
        "Canvas asks which assignment is meant."
    ).tag(config=True)

    def rows(self, gradebook: Gradebook) -> Rows:
        assignments = self.assignments(gradebook)
        yield [
            "Student", "ID", "SIS Login ID", "Section", *(self.columns.get(one.name, one.name) for one in assignments)
        ]  # fmt: skip
        yield ["    Points Possible", "", "", "", *(_number(self.points.maximum(one)) for one in assignments)]
        for student in self.students(gradebook):
            shown = ", ".join(filter(None, (student.last_name, student.first_name))) or student.id
            grades = (self.total(gradebook, one.name, student.id) for one in assignments)
            yield [shown, student.lms_user_id or "", student.id, "", *grades]


class Moodle(_Table):
    """Moodle, "Grades", "Import", "CSV file": map the user by `Username` or `Email address`."""

    name = "moodle.csv"

    def rows(self, gradebook: Gradebook) -> Rows:
        assignments = self.assignments(gradebook)
        yield ["Username", "ID number", "Email address", "First name", "Last name", *(one.name for one in assignments)]
        for student in self.students(gradebook):
            grades = (self.total(gradebook, one.name, student.id) for one in assignments)
            who = [student.id, student.lms_user_id or "", student.email or ""]
            yield [*who, student.first_name or "", student.last_name or "", *grades]


_WHO = ["student_id", "last_name", "first_name", "email"]


def _submission(gradebook: Gradebook, assignment: str, student: str) -> SubmittedAssignment | None:
    try:
        return gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None


def _who(student: Student) -> list[str]:
    return [student.id, student.last_name or "", student.first_name or "", student.email or ""]


def _number(value: float | None) -> Cell:
    """A number without a needless fraction; empty where there is none."""
    if value is None:
        return ""
    return int(value) if float(value).is_integer() else round(float(value), 4)


def _safe(value: Cell) -> Cell:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
