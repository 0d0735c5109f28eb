"""`python -m autograder prove [ASSIGNMENT]`: prove the tests with the course's bank of solutions."""

from __future__ import annotations

import argparse

from autograder.commands import options
from autograder.course.course import Course


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "prove",
        help="prove that the tests catch wrong solutions and pass right ones",
        description="Grade the stub, the reference and every solution of the bank on the way that a submission "
        "goes. Exit status 0: each wrong one loses points at the test that names its mistake, each right one none.",
    )
    command.add_argument("assignment", nargs="?", help="all of them, if not named")
    options.add_course(command)
    options.add_jobs(command)
    command.add_argument("--seed", type=int, metavar="S", help="repeat a run: the seed that it printed")
    command.add_argument("--messages", action="store_true", help="show what learners read for each wrong solution")
    command.add_argument(
        "--mutants", action="store_true", help="instead, change the reference bit by bit and list what no test notices"
    )
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from autograder.proof.prove import main

    course = Course(arguments.course)
    names = options.assignments(course, arguments.assignment)
    if arguments.mutants:
        from autograder.proof import mutants

        return mutants.main(course, names)
    return main(course, names, arguments.jobs or None, arguments.seed, arguments.messages)
