"""`python -m autograder diff ASSIGNMENT STUDENT`: show what a learner changed in the notebook that was released."""

from __future__ import annotations

import argparse

from autograder.commands import options


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "diff",
        help="show what a learner changed in what was released",
        description="Compare a submission, as it was handed in, with the released notebook, cell by cell.",
    )
    command.add_argument("assignment")
    command.add_argument("student")
    options.add_course(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from autograder.intake.diff import show

    print(show(arguments.course, arguments.assignment, arguments.student))
    return 0
