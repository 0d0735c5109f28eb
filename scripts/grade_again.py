"""Grades a class again and again beside processes that never rest, and says whether every gradebook is the same.

    python scripts/grade_again.py exercises ps1_prefill_decode --rounds 10 --jobs 4 --hogs 2

The class is the course's sample submissions, `--copies` of each. Scores, comments and feedback pages of each round are
compared byte for byte with those of the first. Exit status 0: all are equal, and nothing was left ungraded.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from autograder.batch.batch import Plan
from autograder.commands.grade import grade_class
from autograder.course import seeds
from autograder.course.course import Course, demand, open_nbgrader
from autograder.course.gradebook import open_gradebook

Say = Callable[[str], None]
_STATE = re.compile(rb'<meta name="state-of-grades" content="\w+">')


def make_class(course: Course, assignment: str, root: Path, copies: int) -> None:
    """A course directory with the released assignment and `copies` of each sample submission."""
    api = open_nbgrader(course, root)
    shutil.copytree(course.source(assignment), root / "source" / assignment)
    demand(api.generate_assignment(assignment), f"generating {assignment}")
    for name, folder in course.submissions(assignment).items():
        for number in range(copies):
            shutil.copytree(folder, root / "submitted" / f"{name}-{number}" / assignment)


def grade_rounds(root: Path, assignment: str, rounds: int, jobs: int, hogs: int, say: Say) -> list[str]:
    """Grade the class in `root` so often; returns what differs from the first round, in words."""
    seeds.seed(root)  # each round draws the same random inputs
    first: dict[str, Any] = {}
    differences: list[str] = []
    with tempfile.TemporaryDirectory(prefix="grade-again-") as folder, neighbours(hogs):
        shutil.copytree(root, Path(folder) / "before")
        for number in range(1, rounds + 1):
            work = Path(folder) / "class"  # always the same path, since a page may hold it
            shutil.copytree(Path(folder) / "before", work)
            begin = time.monotonic()
            graded = grade_class(work, assignment, Plan(jobs=jobs), lambda text: None)
            found = outcome(work, assignment)
            differences += [
                f"round {number}: {one.student} not graded: {one.ungraded}" for one in graded.results if one.ungraded
            ]
            first = first or found
            differences += [
                f"round {number}: {key} differs"
                for key in sorted(first.keys() | found.keys())
                if first.get(key) != found.get(key)
            ]
            scores = " ".join(f"{one.student} {one.score}" for one in graded.results[:4])
            say(f"round {number}: {len(graded.results)} graded in {time.monotonic() - begin:.0f} s ({scores} ...)")
            shutil.rmtree(work)
    return differences


def outcome(root: Path, assignment: str) -> dict[str, Any]:
    """Each score, comment and message by student and cell, and each feedback page."""
    found: dict[str, Any] = {}
    with open_gradebook(open_nbgrader(Course(root), root).coursedir) as gradebook:
        for submission in gradebook.assignment_submissions(assignment):
            for notebook in submission.notebooks:
                name = f"{submission.student.id}, {notebook.name}"
                found |= {
                    f"score of {name}, {one.name}": (one.score, one.needs_manual_grade) for one in notebook.grades
                }
                found |= {f"comment on {name}, {one.name}": one.comment for one in notebook.comments}
    for path in sorted((root / "feedback").rglob("*.html")):
        # Its hash covers the graded notebook, which says how long each cell took.
        found[f"page {path.relative_to(root)}"] = _STATE.sub(b"", path.read_bytes())
    return found


@contextlib.contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Processes that take all the processor time they get."""
    running = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("course", type=Path, help="folder with nbgrader_config.py and source/")
    parser.add_argument("assignment")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--hogs", type=int, default=2)
    parser.add_argument("--copies", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="grade-again-") as folder:
        root = Path(folder) / "class"
        make_class(Course(options.course.resolve()), options.assignment, root, options.copies)
        say = lambda text: print(text, flush=True)
        found = grade_rounds(root, options.assignment, options.rounds, options.jobs, options.hogs, say)
    print("\n".join(found) or f"{options.rounds} rounds, all equal")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
