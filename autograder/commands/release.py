"""`python -m autograder release ASSIGNMENT`: prove an assignment, then write its released bundle."""

from __future__ import annotations

import argparse

from autograder.commands import options
from autograder.course import exchange
from autograder.course.course import Course


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "release",
        help="prove an assignment and write its released bundle",
        description="Check the markers, that no solution or hidden test leaks, that the stub scores 0 and the solution "
        "the maximum, and that nobody can take over the exchange; then write release/ASSIGNMENT of the course.",
    )
    command.add_argument("assignment")
    options.add_course(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from autograder.proof.release import ReleaseError, prove, takes

    course = Course(arguments.course)
    course.source(arguments.assignment)
    if problems := exchange.problems(course.root):
        raise ReleaseError("; ".join(problems))
    destination = course.root / "release" / arguments.assignment
    prove(course, arguments.assignment, destination)
    print(f"released to {destination}: the stub scores 0, the solution the maximum")
    print("\n".join(takes(course, arguments.assignment)))
    return 0
