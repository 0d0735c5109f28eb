"""`python -m autograder term`: dates, roster, uploads, graders, statistics and similarity of a class."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autograder.course.course import Course, CourseError, load_config, open_nbgrader
from autograder.intake.dropped import dropped

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

HERE = Path(".")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "term",
        help="run a class: dates, roster, uploads, graders, statistics, similarity",
        description="Run a class through a term. Dates change what lateness costs at once, without a regrade; a "
        "learner who is dropped keeps grades and work and is left out of everything from then on.",
    )
    parts = command.add_subparsers(dest="part", required=True, metavar="PART")

    def part(name: str, run: Callable[[argparse.Namespace], None], help: str, *words: str) -> argparse.ArgumentParser:
        found = parts.add_parser(name, help=help, description=help)
        for word in words:
            found.add_argument(word)
        found.add_argument(
            "--course", type=Path, default=HERE, metavar="FOLDER", help="the course's folder (default: this one)"
        )
        found.set_defaults(run=_run, part_run=run)
        return found

    due = part("due", _due, "set when an assignment is due, or show it", "assignment")
    due.add_argument("when", nargs="?", metavar="WHEN", help='"2026-05-01 12:00 UTC", or "never"')
    extend = part(
        "extend", _extend, "give a learner more time, in place of an earlier extension", "assignment", "student"
    )
    extend.add_argument("--days", type=float, default=0.0, metavar="N", help="0 takes the extension back")
    extend.add_argument("--hours", type=float, default=0.0, metavar="N")
    time = part("time", _time, "decide when a submission was handed in", "assignment", "student")
    time.add_argument("when", metavar="WHEN", help='"2026-05-01 12:00 UTC"')
    roster = part("roster", _roster, "put the learners of a CSV file into the class")
    roster.add_argument(
        "file", type=Path, metavar="FILE", help="of nbgrader, Canvas (gradebook) or Moodle (participants)"
    )
    add = part("add", _add, "add a learner, or one who was dropped again", "student")
    for name in ("first-name", "last-name", "email", "lms-user-id"):
        add.add_argument(f"--{name}", default="", metavar="TEXT")
    gone = part("drop", _drop, "take learners out of the class; what they have is kept")
    gone.add_argument("students", nargs="+", metavar="STUDENT")
    upload = part("upload", _upload, "take in the zip file of submissions that Canvas or Moodle gives", "assignment")
    upload.add_argument("file", type=Path, metavar="ZIP")
    upload.add_argument("--worksheet", type=Path, metavar="CSV", help="Moodle's grading worksheet: who, and when")
    upload.add_argument("--zone", default="UTC", metavar="ZONE", help="zone of its times: Europe/Vienna (default: UTC)")
    graders = part("graders", _graders, "divide the class among graders, and show what waits for each", "assignment")
    graders.add_argument("--graders", nargs="+", default=[], metavar="NAME", help="all graders from now on")
    part("stats", _stats, "statistics of each question", "assignment")
    similar = part("similar", _similar, "name pairs of submissions that share much code", "assignment")
    similar.add_argument("--least", type=float, default=0.8, metavar="SHARE", help="of the code (default: 0.8)")


def _run(arguments: argparse.Namespace) -> int:
    arguments.part_run(arguments)
    return 0


@contextmanager
def _gradebook(arguments: argparse.Namespace) -> Iterator[Gradebook]:
    """The gradebook of the course that was named."""
    from nbgrader.coursedir import CourseDirectory

    from autograder.course.gradebook import keep_between_submissions, open_gradebook

    directory = CourseDirectory(config=load_config(arguments.course))
    if "assignment" in arguments:
        Course(arguments.course).source(arguments.assignment)
    keep_between_submissions()
    with open_gradebook(directory) as gradebook:
        yield gradebook


def _due(arguments: argparse.Namespace) -> None:
    from nbgrader.api import MissingEntry

    from autograder.term import dates

    with _gradebook(arguments) as gradebook:
        if arguments.when:
            due = None if arguments.when == "never" else dates.moment(arguments.when)
            dates.set_due(gradebook, arguments.assignment, due)
        try:
            assignment = gradebook.find_assignment(arguments.assignment)
        except MissingEntry:
            print(f"{arguments.assignment}: {dates.shown(None)}")
            return
        print(f"{arguments.assignment}: {dates.shown(assignment.duedate)}")
        for submission in assignment.submissions:
            if submission.extension:
                print(f"  {submission.student.id}: {dates.shown(submission.duedate)}")


def _extend(arguments: argparse.Namespace) -> None:
    from autograder.term import dates

    by = timedelta(days=arguments.days, hours=arguments.hours)
    with _gradebook(arguments) as gradebook:
        due = dates.extend(gradebook, arguments.assignment, arguments.student, by)
    print(f"{arguments.assignment}, {arguments.student}: {dates.shown(due)}")


def _time(arguments: argparse.Namespace) -> None:
    from autograder.term import dates

    when = dates.moment(arguments.when)
    with _gradebook(arguments) as gradebook:
        dates.set_time(arguments.course, gradebook, arguments.assignment, arguments.student, when)
    print(f"{arguments.assignment}, {arguments.student}: handed in {dates.shown(when)}")


def _roster(arguments: argparse.Namespace) -> None:
    from autograder.term import members

    found = members.read_roster(arguments.file)
    with _gradebook(arguments) as gradebook:
        changes = members.enrol(arguments.course, gradebook, found)
    print(f"{len(found)} learners: {len(changes.added)} new, {len(changes.changed)} changed")
    if changes.missing:
        names = " ".join(changes.missing)
        print(f"in the class and not in {arguments.file}: {names}\n  python -m autograder term drop {names}")


def _add(arguments: argparse.Namespace) -> None:
    from autograder.term import members

    fields = {name: getattr(arguments, name) for name in ("first_name", "last_name", "email", "lms_user_id")}
    with _gradebook(arguments) as gradebook:
        changes = members.enrol(arguments.course, gradebook, [members.Member(arguments.student, fields)])
    print(f"{arguments.student} is {'in the class now' if changes.added else 'in the class'}")


def _drop(arguments: argparse.Namespace) -> None:
    from autograder.term import members

    with _gradebook(arguments) as gradebook:
        members.drop(arguments.course, gradebook, arguments.students)
    print(f"dropped, with grades and work kept: {' '.join(arguments.students)}")


def _upload(arguments: argparse.Namespace) -> None:
    from autograder.term import uploads

    try:
        zone = ZoneInfo(arguments.zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CourseError(f"no time zone {arguments.zone!r}") from error
    with _gradebook(arguments) as gradebook:
        upload = uploads.take(
            arguments.course.resolve(), gradebook, arguments.assignment, arguments.file, arguments.worksheet, zone
        )
    print("\n".join([*upload.notes, f"taken in: {len(upload.taken)} submissions"]))


def _graders(arguments: argparse.Namespace) -> None:
    from autograder.term import shares

    with _gradebook(arguments) as gradebook:
        of = shares.divide(arguments.course, gradebook, arguments.graders)
        for share in shares.progress(gradebook, arguments.assignment, of):
            print(f"{share.grader}: {len(share.students)} learners, {share.waiting} answers wait")
    print(f"who grades whom: {arguments.course / shares.FILE}")


def _stats(arguments: argparse.Namespace) -> None:
    from autograder.batch.scores import read
    from autograder.term import statistics

    root = arguments.course.resolve()
    Course(root).source(arguments.assignment)
    api = open_nbgrader(Course(root), root)
    students = sorted(path.parent.name for path in root.glob(f"autograded/*/{arguments.assignment}"))
    results = [read(api, arguments.assignment, name) for name in students if name not in dropped(root)]
    if not results:
        raise CourseError(f"no submission of {arguments.assignment} is graded yet")
    print(statistics.table(statistics.questions(results, statistics.hints_of(root, arguments.assignment))))


def _similar(arguments: argparse.Namespace) -> None:
    from autograder.term import similarity

    root = arguments.course.resolve()
    Course(root).source(arguments.assignment)
    students = sorted(path.parent.name for path in root.glob(f"submitted/*/{arguments.assignment}"))
    handed_in = {name: similarity.code(root, arguments.assignment, name) for name in students}
    released = similarity.code_of(root / "release" / arguments.assignment)
    found = similarity.pairs(handed_in, released, arguments.least)
    for pair in found:
        print(f"{pair.share:4.0%}  {pair.first}  {pair.second}")
    print(f"{len(found)} pairs of {len(students)} submissions share {arguments.least:.0%} of their code or more")
