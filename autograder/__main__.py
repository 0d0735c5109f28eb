"""The command line: `python -m autograder COMMAND`. Exit 0 good, 1 a check failed, 2 bad input."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

from autograder.course.course import Course, CourseError

COURSE = Path("exercises")
WORK = Path("build") / "grading"


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder", description="Release and grade the course's exercises."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser(
        "grade",
        help="grade a class, or the submissions that the repository carries",
        description="With --course: grade all submissions that nbgrader collected in that course directory "
        "(submitted/STUDENT/ASSIGNMENT). Without: release the assignment, collect the sample submissions in "
        "exercises/submissions/ASSIGNMENT and grade them, in build/grading. Learners' code runs in a sandbox, or not "
        "at all. Writes feedback, a CSV file, a summary and telemetry. Only what is new or changed is graded; after an "
        "interrupt the same command goes on where it stopped; grades given by hand stay.",
    )
    command.add_argument("assignment", help="for example ps3_quantization")
    command.add_argument("--course", type=Path, metavar="DIR", help="an nbgrader course directory with submissions")
    command.add_argument("--jobs", type=_count, default=0, metavar="N", help="processes at once (default: cores)")
    command.add_argument("--scheduler", default="", metavar="ADDRESS", help="grade on a Dask cluster: tcp://host:8786")
    command.add_argument("--no-feedback", action="store_true", help="write no feedback pages")
    command.add_argument("--force", action="store_true", help="do everything again, also what has not changed")
    command.add_argument("--diff", metavar="STUDENT", help="only show what this student changed in what was released")
    command.set_defaults(run=_grade)

    command = commands.add_parser(
        "release",
        help="prove an assignment and write its released bundle",
        description="Check the markers, that no solution or hidden test leaks, that the stub scores 0 and the solution "
        "the maximum; then write exercises/release/ASSIGNMENT.",
    )
    command.add_argument("assignment")
    command.set_defaults(run=_release)

    command = commands.add_parser(
        "prove",
        help="prove that the tests catch wrong solutions and pass right ones",
        description="Grade the stub, the reference and every solution of exercises/bank on the way that a submission "
        "goes. Exit status 0: each wrong one loses points at the test that names its mistake, each right one none.",
    )
    command.add_argument("assignment", nargs="?", help="all of them, if not named")
    command.add_argument("--jobs", type=int, metavar="N", help="processes at once (default: one per core)")
    command.add_argument("--seed", type=int, metavar="S", help="repeat a run: the seed that it printed")
    command.add_argument("--messages", action="store_true", help="show what learners read for each wrong solution")
    command.set_defaults(run=_prove)

    command = commands.add_parser(
        "hints",
        help="write the hints for feedback from the wrong solutions of the bank",
        description="Grade every wrong solution of exercises/bank with several seeds and write exercises/hints: a "
        "learner whose test fails as one of them does reads its hint. Afterwards `prove` says whether each is shown.",
    )
    command.add_argument("assignment", nargs="?", help="all of them, if not named")
    command.add_argument("--jobs", type=_count, metavar="N", help="processes at once (default: one per core)")
    command.set_defaults(run=_hints)

    command = commands.add_parser(
        "check",
        help="run a notebook's own tests, as a learner would",
        description="Run all cells of your notebook from a fresh start and say which of its tests fail. Exit status 0: "
        "all pass; 1: something fails; 2: the file cannot be read or holds no test.",
    )
    command.add_argument("notebook", type=Path)
    command.add_argument("--timeout", type=_seconds, default=60, metavar="S", help="seconds for one cell (default: 60)")
    command.set_defaults(run=_check)

    command = commands.add_parser(
        "doctor",
        help="try to break the sandbox that learners' code runs in",
        description="Try to pass each limit of the sandbox, print what held and how to mend what did not. Exit status "
        "0: all limits hold; 1: no stranger's notebook should be run here.",
    )
    command.add_argument("--elsewhere", action="store_true", help="say how to grade from macOS or Windows, and stop")
    command.set_defaults(run=_doctor)

    arguments = parser.parse_args(argv)
    warnings.filterwarnings("ignore", module=r"nbgrader|sqlalchemy|traitlets|jupyter")
    try:
        return int(arguments.run(arguments))
    except CourseError as error:
        print(f"autograder: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if (error.name or "autograder").partition(".")[0] == "autograder":  # ours: no package to install
            raise
        again = f".venv/bin/python -m autograder {arguments.command} ..."
        print(f"autograder: this Python lacks the package {error.name}; run {again}", file=sys.stderr)
    return 2


def _grade(arguments: argparse.Namespace) -> int:
    from autograder.commands.grade import Plan, grade, grade_class, summary

    work = arguments.course or WORK
    if arguments.diff:
        from autograder.intake.diff import show

        print(show(work, arguments.assignment, arguments.diff))
        return 0
    plan = Plan(arguments.jobs, arguments.scheduler, arguments.force, not arguments.no_feedback)
    say = lambda text: print(text, flush=True)
    try:
        if arguments.course:
            graded = grade_class(arguments.course, arguments.assignment, plan, say)
        else:
            graded = grade(Course(COURSE), arguments.assignment, WORK, plan, say)
    except KeyboardInterrupt:
        print("\nautograder: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    root = " --allow-root" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    jupyter = os.path.relpath(Path(sys.executable).parent / "jupyter", work)
    print(f"\n{summary(graded)}\n")
    print(f"grades:     {graded.csv}")
    if plan.feedback:
        print(f"feedback:   {graded.work / 'feedback'}")
    print(f"in detail:  {graded.work / f'{arguments.assignment}-summary.txt'}")
    print(f"formgrader: cd {work} && {jupyter} lab{root}   (then the menu Nbgrader, Formgrader)")
    return 0


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)


def _seconds(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return int(text)


def _release(arguments: argparse.Namespace) -> int:
    from autograder.proof.release import prove

    destination = COURSE / "release" / arguments.assignment
    prove(Course(COURSE), arguments.assignment, destination)
    print(f"released to {destination}: the stub scores 0, the solution the maximum")
    return 0


def _prove(arguments: argparse.Namespace) -> int:
    from autograder.proof.prove import main

    names = [arguments.assignment] if arguments.assignment else []
    return main(Course(COURSE), names, arguments.jobs, arguments.seed, arguments.messages)


def _hints(arguments: argparse.Namespace) -> int:
    from autograder.proof.mistakes import main

    names = [arguments.assignment] if arguments.assignment else []
    return main(Course(COURSE), names, arguments.jobs or os.cpu_count() or 1)


def _check(arguments: argparse.Namespace) -> int:
    from autograder.run.own_check.check import check

    return check(arguments.notebook, arguments.timeout)


def _doctor(arguments: argparse.Namespace) -> int:
    from autograder.commands.doctor import ELSEWHERE, main

    if arguments.elsewhere:
        print(ELSEWHERE)
        return 0
    return main()


if __name__ == "__main__":
    sys.exit(main())
