"""The command line: `python -m autograder COMMAND`.

Exit status 0: good; 1: a check failed; 2: bad input; 3: this machine or the cluster failed, so try again later.
"""

from __future__ import annotations

import argparse
import sys
import warnings

from autograder.commands import check, diff, doctor, grade, hints, init, prove, release, term
from autograder.course.course import CourseError, InfrastructureError
from autograder.sandbox.bwrap import SandboxError


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder", description="Release and grade the course's exercises."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (init, term, grade, release, prove, hints, check, diff, doctor):
        command.add_to(commands)
    arguments = parser.parse_args(argv)
    warnings.filterwarnings("ignore", module=r"nbgrader|sqlalchemy|traitlets|jupyter")
    try:
        return int(arguments.run(arguments))
    except (InfrastructureError, SandboxError) as error:
        print(f"autograder: {error}", file=sys.stderr)
        return grade.NOT_GRADED
    except CourseError as error:
        print(f"autograder: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if (error.name or "autograder").partition(".")[0] == "autograder":  # ours: no package to install
            raise
        again = f".venv/bin/python -m autograder {arguments.command} ..."
        print(f"autograder: this Python lacks the package {error.name}; run {again}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
