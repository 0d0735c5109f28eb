"""The release step: nbgrader's generate_assignment, with proof that what learners get is sound.

It fails, naming the cell, where a solution or hidden-test marker is missing, where the released bundle holds text of a
solution or of a hidden test, where the stub scores above 0 and where the solution scores below the maximum. Both are
graded by the same nbgrader run as a learner's submission, in a course directory of their own.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.batch.scores import autograde
from autograder.course import source as source_notebook
from autograder.course.course import Course, CourseError, InfrastructureError, demand, open_nbgrader
from autograder.course.source import Cell, grade_id, nbgrader_metadata

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI

_REGIONS = {"solution": ("BEGIN SOLUTION", "END SOLUTION"), "hidden test": ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS")}


class ReleaseError(CourseError):
    """The assignment must not be released; the message names the notebook, the cell and the reason."""


def prove(course: Course, assignment: str, destination: Path | None = None) -> None:
    """Prove the assignment in a course directory of its own; then put its released bundle in `destination`, if given.

    Raises ReleaseError; `destination` is then left as it was.
    """
    source = course.source(assignment)
    for path in sorted(source.glob("*.ipynb")):
        check_markers(path)
    with tempfile.TemporaryDirectory() as folder:
        api = open_nbgrader(course, Path(folder) / "course")
        released = generate(api, course, assignment)
        check_leaks(source, released)
        check_scores(api, source, released, assignment)
        if destination is not None:
            shutil.rmtree(destination, ignore_errors=True)
            shutil.copytree(released, destination)


def generate(api: NbGraderAPI, course: Course, assignment: str) -> Path:
    """Run nbgrader's generate_assignment on a copy of the source; return the folder of the released bundle."""
    root = Path(api.coursedir.root)
    copy = root / "source" / assignment
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(course.source(assignment), copy, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    demand(api.generate_assignment(assignment), f"generating {assignment}")
    return root / "release" / assignment


def takes(course: Course, assignment: str) -> list[str]:
    """For each test a line: what it takes from the learner's notebook, with a warning where no answer defines a name.

    Such a name would be whatever the learner makes it: define it in a locked cell, or in the test.
    """
    lines = []
    for path in sorted(course.source(assignment).glob("*.ipynb")):
        known = source_notebook.read(path)
        for cell in known.cells:
            if cell.kind == "test":
                answers, others = known.taken(cell.name)
                lines.append(f"{path.name}, {cell.name} takes from the learner: {', '.join(answers) or 'nothing'}")
                if others:
                    lines.append(f"  WARNING: and {', '.join(others)}, which no answer cell defines")
    return lines


def check_markers(path: Path) -> None:
    """Check that solutions and hidden tests lie between matching markers, in cells of the right kind."""
    for name, cell in _cells(path):
        where = f"{path.name}, cell {name}"
        kind = nbgrader_metadata(cell)
        for region, (begin, end) in _REGIONS.items():
            is_open, seen = False, 0
            for number, line in enumerate(_lines(cell), start=1):
                if begin in line:
                    if is_open:
                        raise ReleaseError(f"{where}: {begin} twice without {end} (line {number})")
                    is_open, seen = True, seen + 1
                elif end in line:
                    if not is_open:
                        raise ReleaseError(f"{where}: {end} without {begin} (line {number})")
                    is_open = False
            if is_open:
                raise ReleaseError(f"{where}: {begin} without {end}")
            if region == "solution" and kind.get("solution") and not seen:
                raise ReleaseError(f"{where}: a solution cell without {begin} and {end}")
            if region == "solution" and seen and not kind.get("solution"):
                raise ReleaseError(f"{where}: {begin} in a cell that is not marked as a solution")
            if region == "hidden test" and seen and (not kind.get("grade") or kind.get("solution")):
                raise ReleaseError(f"{where}: {begin} in a cell that is not a test cell")


def check_leaks(source: Path, released: Path) -> None:
    """Search every file of the bundle for lines that stand only in solutions or hidden tests."""
    secret: dict[str, str] = {}
    shown: list[str] = []
    for path in source.glob("*.ipynb"):
        for name, cell in _cells(path):
            inside, outside = _split(cell)
            secret |= dict.fromkeys(inside, f"{path.name}, cell {name}")
            shown += outside
    open_text = "\n".join(shown)
    # A short line, or one that is also shown on purpose, gives nothing away.
    telling = {line: where for line, where in secret.items() if len(line) >= 12 and line not in open_text}
    for file in sorted(path for path in released.rglob("*") if path.is_file()):
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.suffix == ".ipynb":
            texts = [line.strip() for _, cell in _cells(file) for line in _lines(cell)]
            texts += [json.dumps(cell.get("outputs", [])) for _, cell in _cells(file)]
            text = "\n".join(texts)
        for line, where in telling.items():
            if line in text:
                raise ReleaseError(f"{where}: the released {file.name} holds {line!r}")


def check_scores(api: NbGraderAPI, source: Path, released: Path, assignment: str) -> None:
    """Grade the bundle as released, and with the solutions filled in: 0 and the maximum, cell by cell."""
    for student, solved in (("stub", False), ("solution", True)):
        target = Path(api.coursedir.root) / "submitted" / student / assignment
        shutil.copytree(released, target)
        if solved:
            for path in target.glob("*.ipynb"):
                fill_in(path, source / path.name)
        result = autograde(api, assignment, student)
        if result.ungraded:
            raise InfrastructureError(f"{assignment}: the {student} cannot be graded: {result.ungraded}")
        if result.problem:
            raise ReleaseError(f"{assignment}: the {student} cannot be graded: {result.problem}")
        for cell in result.cells:
            right = cell.points if solved else 0.0
            if cell.score is not None and cell.score != right:
                said = f" ({cell.reason.splitlines()[0]})" if cell.reason else ""
                raise ReleaseError(
                    f"{assignment}, cell {cell.name}: the {student} scores {cell.score:g}, not {right:g}{said}"
                )


def fill_in(path: Path, source: Path) -> None:
    """Put the source's solution cells into a released notebook, as a learner who knows the answers would."""
    answers = {name: cell["source"] for name, cell in _cells(source) if nbgrader_metadata(cell).get("solution")}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = grade_id(cell)
        if name in answers:
            cell["source"] = answers[name]
    path.chmod(0o644)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _cells(path: Path) -> Iterator[tuple[str, Cell]]:
    """Each cell with its name: nbgrader's if it has one, else its place in the notebook."""
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1):
        yield grade_id(cell) or f"number {number}", cell


def _lines(cell: Cell) -> list[str]:
    source = cell["source"]
    return ("".join(source) if isinstance(source, list) else source).split("\n")


def _split(cell: Cell) -> tuple[list[str], list[str]]:
    """The cell's stripped lines: those between markers, and the others."""
    between: list[str] = []
    others: list[str] = []
    inside = False
    for line in _lines(cell):
        if any(begin in line for begin, _ in _REGIONS.values()):
            inside = True
        elif any(end in line for _, end in _REGIONS.values()):
            inside = False
        else:
            (between if inside else others).append(line.strip())
    return between, others
