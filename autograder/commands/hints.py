"""`python -m autograder hints [ASSIGNMENT]`: write the hints of feedback pages from the bank's wrong solutions."""

from __future__ import annotations

import argparse
import os

from autograder.commands import options
from autograder.course.course import Course


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "hints",
        help="write the hints for feedback from the wrong solutions of the bank",
        description="Grade every wrong solution of the bank with several seeds and write hints/ASSIGNMENT.toml: a "
        "learner whose test fails as one of them does reads its hint. Afterwards `prove` says whether each is shown.",
    )
    command.add_argument("assignment", nargs="?", help="all of them, if not named")
    options.add_course(command)
    options.add_jobs(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from autograder.proof.mistakes import main

    course = Course(arguments.course)
    return main(course, options.assignments(course, arguments.assignment), arguments.jobs or os.cpu_count() or 1)
