"""What nbgrader's own commands and formgrader do otherwise in a course that uses this package.

`nbgrader autograde` exits 3 where this machine kept a submission from being graded, as `autograder grade` does; alone
it exits 1 for that as for a mistyped name. Formgrader shows maxima without the bonus, as exports and feedback do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache, wraps
from typing import Any

from nbgrader.api import Assignment, Gradebook, Notebook, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from sqlalchemy.orm import object_session
from traitlets.config import Config

from autograder.course.points import Points

NOT_GRADED = 3  # exit status: no score is wrong, but something could not be graded
_COURSE: list[Config] = []  # the configuration that was loaded last: it may not be complete yet


class NotGradedError(NbGraderException):
    """A submission could not be graded: what is wrong with a submission itself scores, so this machine is to blame."""


def use(config: Config) -> None:
    """Change nbgrader's classes in this process, for the course with this configuration."""
    _COURSE[:] = [config]
    _name_failures()
    _leave_bonus_out()
    if app := sys.modules.get("nbgrader.apps.autogradeapp"):  # only in the command itself
        _exit_3(app.AutogradeApp)


@lru_cache(maxsize=1)
def _name_failures() -> None:
    convert = Autograde.convert_notebooks

    @wraps(convert)
    def convert_notebooks(self: Autograde) -> None:
        try:
            convert(self)
        except NbGraderException as error:
            raise NotGradedError(*error.args) from error

    Autograde.convert_notebooks = convert_notebooks


@lru_cache(maxsize=1)
def _exit_3(app: Any) -> None:
    start = app.start

    @wraps(start)
    def start_and_tell(self: Any) -> None:
        try:
            start(self)
        except SystemExit as stop:
            if isinstance(stop.__context__, NotGradedError):
                sys.exit(NOT_GRADED)
            raise

    app.start = start_and_tell


@lru_cache(maxsize=1)
def _leave_bonus_out() -> None:
    """Wrap whatever makes the dictionaries that formgrader shows."""
    _wrap(Assignment, "to_dict", lambda row: row.notebooks)
    _wrap(SubmittedAssignment, "to_dict", lambda row: row.assignment.notebooks)
    _wrap(Notebook, "to_dict", lambda row: [row])
    _wrap(SubmittedNotebook, "to_dict", lambda row: [row.notebook])
    _wrap(Student, "to_dict", _all_notebooks)
    _wrap(Gradebook, "student_dicts", lambda book: book.db.query(Notebook).all())
    _wrap(Gradebook, "submission_dicts", lambda book, name: book.find_assignment(name).notebooks)


def _all_notebooks(row: Student) -> list[Notebook]:
    session = object_session(row)
    return session.query(Notebook).all() if session else []


def _wrap(kind: type, name: str, notebooks: Callable[..., list[Notebook]]) -> None:
    """Take the bonus of these notebooks off the maxima in what a method returns: a dictionary, or a list of them."""
    method = getattr(kind, name)

    @wraps(method)
    def without_bonus(self: Any, *words: Any) -> Any:
        answer = method(self, *words)
        bonus = _bonus(notebooks(self, *words)) if answer else {}
        for about in [answer] if isinstance(answer, dict) else answer:
            for key in bonus.keys() & about.keys():
                about[key] = max(about[key] - bonus[key], 0.0)
        return answer

    setattr(kind, name, without_bonus)


def _bonus(notebooks: list[Notebook]) -> dict[str, float]:
    """The bonus in these notebooks, by the names that nbgrader gives to maxima."""
    rules = Points(config=_COURSE[0]).bonus
    found = dict.fromkeys(("max_score", "max_code_score", "max_written_score", "max_task_score"), 0.0)
    for notebook in notebooks:
        patterns = rules.get(notebook.assignment.name, [])
        kinds = [
            (cell, "max_code_score" if cell.cell_type == "code" else "max_written_score")
            for cell in notebook.grade_cells
        ]
        kinds += [(cell, "max_task_score") for cell in notebook.task_cells]
        for cell, kind in kinds:
            if any(fnmatchcase(cell.name, pattern) for pattern in patterns):
                found["max_score"] += cell.max_score
                found[kind] += cell.max_score
    return found
