"""The members of a class: a roster from a CSV file, learners who join or leave in the middle of a term.

A learner who leaves is dropped, not deleted: grades and submissions stay, `dropped.txt` of the course has the
learner's id, and grading, feedback, exports and statistics leave it out. Adding the learner again undoes it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.course.course import CourseError
from autograder.intake.dropped import dropped, write_dropped

_FIELDS = ("first_name", "last_name", "email", "lms_user_id")
_NAME = re.compile(r"[\w.@-][\w.@ -]*")  # it becomes the name of a folder


@dataclass(frozen=True)
class Member:
    """A learner. `fields` are nbgrader's: first_name, last_name, email, lms_user_id; an empty one is not known."""

    id: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Changes:
    """What a roster changed, by learners' ids. `missing` are in the gradebook and not in the roster."""

    added: list[str]
    changed: list[str]
    missing: list[str]


def read_roster(path: Path) -> list[Member]:
    """The learners in a CSV file with the columns of nbgrader, of Canvas's gradebook or of Moodle's participants.

    nbgrader: `id`, and any of first_name, last_name, email, lms_user_id. Canvas: `Student` ("Last, First"), `ID`,
    `SIS Login ID`, which becomes the id. Moodle: `First name`, `Last name` (or `Surname`), `Email address`, and
    `Username`, which becomes the id; without it the part of the address before the @ does.
    Raises CourseError that names the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{path} cannot be read: {error}") from error
    columns = set(rows[0]) if rows else set()
    if "id" in columns:
        found = [Member(row["id"] or "", {name: row.get(name) or "" for name in _FIELDS}) for row in rows]
    elif {"Student", "ID", "SIS Login ID"} <= columns:
        rows = [row for row in rows if row["ID"]]  # not the line of points possible, not the test student
        found = [_from_canvas(row) for row in rows]
    elif {"First name", "Email address"} <= columns:
        found = [_from_moodle(row) for row in rows]
    else:
        known = "id (nbgrader), Student, ID and SIS Login ID (Canvas), or First name and Email address (Moodle)"
        raise CourseError(f"{path}: its first line names no columns of a roster: {known}")
    seen: set[str] = set()
    for number, member in enumerate(found, start=2):
        if not _NAME.fullmatch(member.id):
            raise CourseError(f"{path}, learner {number - 1}: {member.id!r} cannot be a learner's id")
        if member.id in seen:
            raise CourseError(f"{path}: the id {member.id} stands there twice")
        seen.add(member.id)
    return found


def _from_canvas(row: Mapping[str, str]) -> Member:
    last, _, first = (part.strip() for part in row["Student"].partition(","))
    return Member(row["SIS Login ID"], {"first_name": first, "last_name": last, "lms_user_id": row["ID"]})


def _from_moodle(row: Mapping[str, str]) -> Member:
    email = row["Email address"] or ""
    last = row.get("Last name") or row.get("Surname") or ""
    fields = {"first_name": row["First name"] or "", "last_name": last, "email": email}
    return Member(row.get("Username") or email.partition("@")[0], {**fields, "lms_user_id": row.get("ID number") or ""})


def enrol(root: Path, gradebook: Gradebook, members: Iterable[Member]) -> Changes:
    """Put these learners into the gradebook. A field that is not known stays as it was; nobody is removed."""
    before = {student.id: student for student in gradebook.students}
    out = dropped(root)
    added, changed, seen = [], [], set()
    for member in members:
        known = {name: value for name, value in member.fields.items() if value}
        seen.add(member.id)
        old = before.get(member.id)
        if old is None or member.id in out:
            added.append(member.id)
        elif any((getattr(old, name) or "") != value for name, value in known.items()):
            changed.append(member.id)
        gradebook.update_or_create_student(member.id, **known)
    write_dropped(root, out - seen)
    return Changes(added, changed, sorted(set(before) - seen - out))


def drop(root: Path, gradebook: Gradebook, students: Sequence[str]) -> None:
    """Take learners out of the class and keep what they have. Raises CourseError, naming those that are not in it."""
    known = {student.id for student in gradebook.students}
    if unknown := [name for name in students if name not in known]:
        raise CourseError(f"not in the class: {', '.join(unknown)}")
    write_dropped(root, dropped(root) | set(students))
