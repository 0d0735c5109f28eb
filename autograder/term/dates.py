"""When work is due: due dates, extensions, and the time that a submission counts as handed in.

Lateness is worked out where grades leave (course/points.py), so none of these needs a regrade.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import parse_utc

from autograder.course.course import CourseError
from autograder.intake import arrival


def moment(text: str) -> datetime:
    """A time as nbgrader keeps it: UTC, without saying so. Raises CourseError unless the text is one with a zone."""
    try:
        found = parse_utc(text)
    except (ValueError, OverflowError, TypeError) as error:
        raise CourseError(f"{text!r} is no time such as 2026-05-01 12:00 UTC") from error
    if not isinstance(found, datetime):
        raise CourseError(f"{text!r} is no time such as 2026-05-01 12:00 UTC")
    return found


def shown(time: datetime | None) -> str:
    return "no due date" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


def set_due(gradebook: Gradebook, assignment: str, due: datetime | None) -> None:
    """Set or take away an assignment's due date; one that nbgrader does not know yet is made."""
    gradebook.update_or_create_assignment(assignment, duedate=due)


def extend(gradebook: Gradebook, assignment: str, student: str, by: timedelta) -> datetime | None:
    """Give a learner more time, in place of an extension given before; returns when it is due for that learner.

    Raises CourseError if the gradebook knows no such assignment or learner.
    """
    try:
        gradebook.find_student(student)
        due = gradebook.find_assignment(assignment).duedate
    except MissingEntry as error:
        raise CourseError(str(error)) from error
    gradebook.update_or_create_submission(assignment, student)
    gradebook.grant_extension(assignment, student, minutes=by.total_seconds() / 60)
    return due + by if due else None


def set_time(root: Path, gradebook: Gradebook, assignment: str, student: str, time: datetime) -> None:
    """Decide when a submission was handed in. Raises CourseError if nothing of that learner's was taken in."""
    folder = root / "submitted" / student / assignment
    if not folder.is_dir():
        raise CourseError(f"{student} has handed in nothing for {assignment}: no folder {folder}")
    (folder / arrival.FILE).write_text(f"{time.replace(tzinfo=UTC):%Y-%m-%d %H:%M:%S} UTC", encoding="utf-8")
    try:
        gradebook.find_submission(assignment, student).timestamp = time
        gradebook.db.commit()
    except MissingEntry:
        pass  # autograding reads the file
