"""`python -m autograder doctor`: try to break the sandbox, and look for open doors in the exchange.

A limit is believed only when an attempt to pass it has failed (the attempts are in sandbox/probes). What does not hold
is printed with the way to mend it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from autograder.commands import options
from autograder.course import CONFIG, exchange
from autograder.run.kernel_probe import kernel_starts
from autograder.sandbox.launch import SandboxError, check
from autograder.sandbox.probes import escapes

PROBES = [*escapes.PROBES, kernel_starts]

ELSEWHERE = """The sandbox needs Linux. Two ways to grade from here:

  a container   docker run -it --privileged -v "$PWD":/course -w /root python:3.13 bash
                and in it: apt-get update && apt-get install -y bubblewrap
                           git clone /course course && cd course && make grade
                (--privileged lets the sandbox make its own namespaces and control groups inside; learners' code gets
                none of it. Give the container nothing but the course.)
  WSL 2         on Windows: `wsl --install -d Debian`, then in its terminal: sudo apt install bubblewrap make
                python3-venv, and the course's own commands, in a clone below your Linux home folder

Learners need none of this: writing and checking answers works everywhere."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "doctor",
        help="try to break the sandbox that learners' code runs in",
        description="Try to pass each limit of the sandbox, look at the exchange of the course, print what held and "
        "how to mend what did not. Exit status 0: all holds; 1: no stranger's notebook should be run here.",
    )
    options.add_course(command)
    command.add_argument("--elsewhere", action="store_true", help="say how to grade from macOS or Windows, and stop")
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.elsewhere:
        print(ELSEWHERE)
        return 0
    return main(arguments.course)


def main(course: Path = options.COURSE) -> int:
    """Print the table; 0 if everything held, 1 if not."""
    if not sys.platform.startswith("linux"):
        print(f"This is {sys.platform}. {ELSEWHERE}")
        return 1
    try:
        enforced = check()
    except SandboxError as error:
        print(f"FAIL  the sandbox starts\n      {error}\n\nNothing of a learner's is run until this is mended.")
        return 1
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    print(f"Trying to break the sandbox, started by {who}. What holds it:")
    print("".join(f"  - {line}\n" for line in enforced))
    failed = 0
    for probe in PROBES:
        found = probe()
        failed += not found.held
        print(f"{'ok  ' if found.held else 'FAIL'}  {found.name}: {found.what}", flush=True)
        if not found.held and found.mend:
            print(f"      {found.mend}")
    print(f"\n{len(PROBES) - failed} of {len(PROBES)} limits hold.")
    return 1 if failed + _open_doors(course) else 0


def _open_doors(course: Path) -> int:
    """Print what is open in the course's exchange; returns how much that is."""
    if not (course / CONFIG).is_file():
        print(f"No course in {course}: its exchange was not looked at (--course FOLDER names one).")
        return 0
    problems = exchange.problems(course)
    for problem in problems:
        print(f"FAIL  the exchange: {problem}")
    if not problems:
        print("ok    the exchange: nobody can take it over")
    return len(problems)
