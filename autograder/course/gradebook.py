"""nbgrader's gradebook for a class: the same rows in a few queries, in one transaction for each notebook.

nbgrader's steps ask for each cell and each grade by a query of its own, commit after each cell, and open the gradebook
about eight times for a submission, each time with a new engine that has to compile every query again. In a command that
ends after one submission that does not matter. Nothing here changes what is computed or stored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import nbgrader.api
import sqlalchemy
from alembic.script import ScriptDirectory
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from nbgrader.api import BaseCell, Comment, Grade, Gradebook, GradeCell, InvalidEntry, TaskCell
from nbgrader.coursedir import CourseDirectory
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.nbgraderformat import common
from nbgrader.preprocessors import overwritecells

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI


def open_gradebook(course: CourseDirectory, kind: type[Gradebook] = Gradebook) -> Gradebook:
    """The gradebook of a course directory, for a `with` block that closes it. Every part of this package opens it here.

    `kind` is `Gradebook` or one of the classes below.
    """
    return kind(course.db_url, course.course_id)


class Sources(Gradebook):
    """For OverwriteCells: an assignment's cells."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self._cells: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {}

    def find_source_cell(self, name: str, notebook: str, assignment: str) -> Any:
        found = self._read(notebook, assignment)[0].get(name)
        return found or super().find_source_cell(name, notebook, assignment)

    def find_graded_cell(self, name: str, notebook: str, assignment: str) -> Any:
        found = self._read(notebook, assignment)[1].get(name)
        return found or super().find_graded_cell(name, notebook, assignment)

    def _read(self, notebook: str, assignment: str) -> tuple[dict[str, Any], dict[str, Any]]:
        key = notebook, assignment
        if key not in self._cells:
            row = self.find_notebook(notebook, assignment)
            graded = [
                cell for kind in (GradeCell, TaskCell) for cell in self.db.query(kind).filter_by(notebook_id=row.id)
            ]
            self._cells[key] = {cell.name: cell for cell in row.source_cells}, {cell.name: cell for cell in graded}
        return self._cells[key]


class Grades(Gradebook):
    """For SaveAutoGrades: one submission's grades and comments; all or none of what is changed is kept."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self._commit = self.db.commit
        self.db.commit = lambda: None
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}

    def __exit__(self, kind: Any, *more: Any) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            super().__exit__(kind, *more)

    def find_grade(self, name: str, notebook: str, assignment: str, student: str) -> Any:
        found = self._read(Grade, notebook, assignment, student).get(name)
        return found or super().find_grade(name, notebook, assignment, student)

    def find_comment(self, name: str, notebook: str, assignment: str, student: str) -> Any:
        found = self._read(Comment, notebook, assignment, student).get(name)
        return found or super().find_comment(name, notebook, assignment, student)

    def _read(self, kind: Any, notebook: str, assignment: str, student: str) -> dict[str, Any]:
        key = kind, notebook, assignment, student
        if key not in self._rows:
            row = self.find_submission_notebook(notebook, assignment, student)
            query = self.db.query(BaseCell.name, kind).join(kind, kind.cell_id == BaseCell.id)
            self._rows[key] = dict(tuple(one) for one in query.filter(kind.notebook_id == row.id))
        return self._rows[key]


def enrol(api: NbGraderAPI, assignment: str, students: Sequence[str]) -> None:
    """Make the students and their submissions known at once, so that no two processes create the same row."""
    if not students:
        return
    for attempt in range(5):
        try:
            with open_gradebook(api.coursedir) as gradebook:
                for student in students:
                    gradebook.update_or_create_student(student)
                    gradebook.update_or_create_submission(assignment, student)
            return
        except InvalidEntry:  # a batch of another assignment did the same just now
            if attempt == 4:
                raise
            time.sleep(0.2)


@lru_cache(maxsize=1)
def keep_between_submissions() -> None:
    """Make nbgrader keep them, from now on in this process."""
    # For a new gradebook nbgrader runs the program `alembic`, which has to be on PATH and takes seconds, only to learn
    # the newest revision of the schema. The same answer from the library:
    nbgrader.api.get_alembic_version = lambda: ScriptDirectory(ALEMBIC_DIR).get_current_head()

    # Closing a gradebook closes an engine's connections; the engine keeps its compiled queries.
    engines = nbgrader.api.create_engine = lru_cache(maxsize=8)(nbgrader.api.create_engine)
    os.register_at_fork(after_in_child=engines.cache_clear)

    tables = nbgrader.api.Base.metadata
    create_all = tables.create_all

    def create_if_empty(bind: Any) -> None:
        if not sqlalchemy.inspect(bind).get_table_names():
            create_all(bind=bind)

    tables.create_all = create_if_empty

    validators: dict[str, Any] = {}
    seen: set[tuple[str, str]] = set()  # every submission has the same metadata, since it was rebuilt

    def validate(instance: Any, schema: Any) -> None:
        key = json.dumps(schema)
        here = key, json.dumps(instance, sort_keys=True)
        if here in seen:
            return
        if key not in validators:
            kind = validator_for(schema)
            kind.check_schema(schema)
            validators[key] = kind(schema)
        if (error := best_match(validators[key].iter_errors(instance))) is not None:
            raise error
        if len(seen) < 10_000:
            seen.add(here)

    common.jsonschema = SimpleNamespace(validate=validate)

    overwritecells.Gradebook = Sources
