"""A gradebook for one notebook on its way through autograding: read in a few queries, written in one transaction.

nbgrader's preprocessors ask for each cell and each grade by a query of its own, and commit after each cell, which makes
the disk wait some fifty times for a notebook. The rows that are read and written are the same here.
"""

from __future__ import annotations

from typing import Any

from nbgrader.api import BaseCell, Comment, Grade, Gradebook, GradeCell, TaskCell


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
