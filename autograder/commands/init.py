"""`python -m autograder init FOLDER`: make a course with one assignment."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "init",
        help="make a course with one assignment to begin with",
        description="Make a course in a new folder: the configuration, the assignment `warmup` with tests, hidden "
        "tests, a question that a person grades and a bonus, and the bank of solutions that proves its tests.",
    )
    command.add_argument("folder", type=Path, metavar="FOLDER", help="a new folder, which only you may enter")
    command.add_argument(
        "--exchange", type=Path, metavar="FOLDER", help="where notebooks travel (default: FOLDER-exchange)"
    )
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from autograder.term import new

    new.make(arguments.folder, arguments.exchange)
    print(f"a course with the assignment warmup is in {arguments.folder}; next:")
    print(f"  cd {arguments.folder}")
    print("  python -m autograder prove --course .            # do its tests catch the mistakes that people make?")
    print("  python -m autograder release warmup --course .   # make what learners get")
    return 0
