"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from autograder.course.course import Course

COURSE = Path("exercises")


def add_course(command: argparse.ArgumentParser) -> None:
    """`--course FOLDER`, the course that the command works on."""
    command.add_argument(
        "--course",
        type=Path,
        default=COURSE,
        metavar="FOLDER",
        help=f"folder with nbgrader_config.py and source/ (default: ./{COURSE})",
    )


def add_jobs(command: argparse.ArgumentParser) -> None:
    """`--jobs N`; 0 if it is not given."""
    command.add_argument("--jobs", type=count, default=0, metavar="N", help="processes at once (default: cores)")


def assignments(course: Course, named: str | None) -> list[str]:
    """The assignment that was named, or all of the course. Raises CourseError for one that it does not have."""
    names = [named] if named else course.assignments()
    for name in names or [""]:
        course.source(name)
    return names


def count(text: str) -> int:
    """For argparse: a number of processes."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)


def seconds(text: str) -> int:
    """For argparse: a number of seconds."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return int(text)
