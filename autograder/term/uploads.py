"""Submissions from Canvas and Moodle: the zip file that "Download submissions" gives, taken in as if collected.

Canvas names each file `lastfirst_[LATE_]USER_FILE_name` (the name in small letters without spaces and signs; USER is
the learner's Canvas number, nbgrader's lms_user_id). Its zip holds no times. Moodle makes a folder
`First Last_PARTICIPANT_assignsubmission_file_` for each learner, or puts that before each file's name; the grading
worksheet of the same page says who a participant is and when the work came in.
"""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from nbgrader.api import Gradebook, Student

from autograder.course.course import CourseError
from autograder.intake import archive, arrival, collect
from autograder.intake.dropped import dropped
from autograder.intake.receive import Allowance

_CLASS = Allowance(file=100 * 10**6, total=20 * 10**9, files=100_000, folders=100_000)  # a class's zip file
_CANVAS = re.compile(r"(?P<name>.*?)_(?P<late>LATE_)?(?P<user>\d+)_\d+_(?P<file>.+)", re.DOTALL)
_MOODLE = re.compile(r"(?P<name>[^/]+?)_(?P<user>\d+)_assignsubmission_file_/?(?P<file>.+)", re.DOTALL)
_AGAIN = re.compile(r"-\d+(?=\.ipynb$)")  # Canvas adds it to a file that was handed in again


@dataclass
class Upload:
    """What became of a zip file: learners whose work was taken in, and a sentence for each thing to look at."""

    taken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Found:
    """A learner's files in the zip file."""

    student: str
    files: dict[str, Path] = field(default_factory=dict)
    late: bool = False
    time: datetime | None = None


def take(
    root: Path, gradebook: Gradebook, assignment: str, zip_file: Path, worksheet: Path | None = None, zone: tzinfo = UTC
) -> Upload:
    """Take in a class's zip file for an assignment; Canvas's or Moodle's is told by its names of files.

    `worksheet` is Moodle's grading worksheet, whose times are in `zone`. Work that was taken in before is replaced; its
    original is kept. Raises CourseError if the zip file or the worksheet is neither's.
    """
    if not zip_file.is_file():
        raise CourseError(f"there is no file {zip_file}")
    upload = Upload()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "zip"
        upload.notes += archive.unpack(zip_file, folder, _CLASS)
        names = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        students = {student.id: student for student in gradebook.students if student.id not in dropped(root)}
        for found in _sort(names, students, _participants(worksheet, zone), zip_file, upload.notes):
            desk = Path(place) / "desks" / found.student
            desk.mkdir(parents=True)
            expected = {path.name for path in (root / "release" / assignment).glob("*.ipynb")}
            for name, path in found.files.items():
                plain = _AGAIN.sub("", name)
                shutil.copyfile(path, desk / (plain if plain in expected and plain not in found.files else name))
            if found.time is not None:
                (desk / arrival.FILE).write_text(f"{found.time:%Y-%m-%d %H:%M:%S} UTC", encoding="utf-8")
            elif found.late:
                upload.notes.append(
                    f"{found.student}: Canvas marks it late and gives no time, so it counts as in time until you say "
                    f"when it came: python -m autograder term time {assignment} {found.student} WHEN"
                )
            if (root / "submitted" / found.student / assignment).exists():
                upload.notes.append(f"{found.student}: replaces what was handed in before (its original is kept)")
            try:
                report = collect.prepare(root, assignment, found.student, desk)
            except collect.CollectError as error:
                raise CourseError(str(error)) from error
            upload.notes += [f"{found.student}: {line}" for line in [*report.refused, *report.repairs, *report.doubts]]
            upload.taken.append(found.student)
    return upload


def _sort(
    names: Mapping[str, Path],
    students: Mapping[str, Student],
    participants: Mapping[str, tuple[str, datetime | None]],
    zip_file: Path,
    notes: list[str],
) -> Iterator[_Found]:
    """Each learner's files. What belongs to nobody in the class is left out with a note."""
    matches = {name: (_MOODLE.fullmatch(name), _CANVAS.fullmatch(name)) for name in names}
    if names and not any(moodle or canvas for moodle, canvas in matches.values()):
        raise CourseError(
            f"{zip_file} is no download of submissions from Canvas or Moodle: its first file is {min(names)}"
        )
    found: dict[str, _Found] = {}
    for name, (moodle, canvas) in matches.items():
        match = moodle or canvas
        if match is None:
            notes.append(f"{name} belongs to no submission; it was left out")
            continue
        time = None
        if moodle:
            email, time = participants.get(moodle["user"], ("", None))
            student = _by_email(students, email) or _by_name(students, moodle["name"])
        else:
            student = _by_number(students, match["user"]) or _by_canvas_name(students, match["name"])
        if student is None:
            notes.append(f"{name}: nobody in the class is {match['name']} (number {match['user']}); it was left out")
            continue
        late = bool(canvas and not moodle and canvas["late"])
        entry = found.setdefault(student, _Found(student, late=late, time=time))
        entry.files[match["file"].rpartition("/")[2]] = names[name]
    yield from found.values()


def _by_number(students: Mapping[str, Student], number: str) -> str | None:
    return _only(name for name, student in students.items() if student.lms_user_id == number)


def _by_canvas_name(students: Mapping[str, Student], name: str) -> str | None:
    """By the name, where the roster knows no number."""
    plain = lambda student: re.sub(r"\W", "", f"{student.last_name or ''}{student.first_name or ''}").lower()
    return _only(one for one, student in students.items() if not student.lms_user_id and plain(student) == name)


def _by_email(students: Mapping[str, Student], email: str) -> str | None:
    return _only(name for name, student in students.items() if email and (student.email or "").lower() == email.lower())


def _by_name(students: Mapping[str, Student], name: str) -> str | None:
    full = lambda student: f"{student.first_name or ''} {student.last_name or ''}".strip()
    return _only(one for one, student in students.items() if full(student) == name)


def _only(names: Iterator[str]) -> str | None:
    """The one name, if it is one: two learners of one name are not guessed at."""
    found = list(names)
    return found[0] if len(found) == 1 else None


def _participants(worksheet: Path | None, zone: tzinfo) -> dict[str, tuple[str, datetime | None]]:
    """Moodle's participants by number: address, and when the work was last changed (UTC)."""
    if worksheet is None:
        return {}
    try:
        with worksheet.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{worksheet} cannot be read: {error}") from error
    if not rows or not {"Identifier", "Email address"} <= set(rows[0]):
        raise CourseError(f"{worksheet} is no grading worksheet of Moodle: it lacks Identifier or Email address")
    return {
        row["Identifier"].rpartition(" ")[2]: (
            row["Email address"],
            _time(row.get("Last modified (submission)") or "", zone, worksheet),
        )
        for row in rows
    }


def _time(text: str, zone: tzinfo, worksheet: Path) -> datetime | None:
    """A time such as `Friday, 1 May 2026, 11:30 AM`; None where Moodle writes a dash."""
    import dateutil.parser

    if text.strip() in ("", "-"):
        return None
    try:
        return dateutil.parser.parse(text).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CourseError(f"{worksheet}: {text!r} is no time") from error
