"""`python -m autograder check NOTEBOOK`: run a notebook's own tests, as a learner would."""

from __future__ import annotations

import argparse
from pathlib import Path

from autograder.commands import options


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "check",
        help="run a notebook's own tests, as a learner would",
        description="Run all cells of your notebook from a fresh start and say which of its tests fail. Exit status 0: "
        "all pass; 1: something fails; 2: the file cannot be read or holds no test.",
    )
    command.add_argument("notebook", type=Path, help="a notebook, or the name of one that the course has released")
    options.add_course(command)
    command.add_argument(
        "--timeout", type=options.seconds, default=60, metavar="S", help="seconds for one cell (default: 60)"
    )
    command.add_argument(
        "--answer",
        metavar="NAME",
        help="run nothing; show the model answer and the rubric of this written answer, once it is written",
    )
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from autograder.run.own_check.check import check, show_model_answer

    path: Path = arguments.notebook
    released = arguments.course / "release" / path / f"{path.name}.ipynb"
    path = released if not path.exists() and released.is_file() else path
    if arguments.answer:
        return show_model_answer(path, arguments.course, arguments.answer)
    return check(path, arguments.timeout, course=arguments.course)
