"""What a learner changed: a submission, as it was handed in, against the notebook as it was released."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from autograder.course.course import CourseError
from autograder.course.source import Notebook, grade_id
from autograder.intake.canonical import RefusedError, parse, quoted
from autograder.intake.collect import original


def show(root: Path, assignment: str, student: str) -> str:
    """A unified diff, cell by cell, of all notebooks. Raises CourseError if there is no such submission or release."""
    released = root / "release" / assignment
    submitted = original(root, assignment, student) or root / "submitted" / student / assignment
    if not list(released.glob("*.ipynb")):
        raise CourseError(f"{released} holds no notebook: nothing to compare with")
    if not submitted.is_dir():
        raise CourseError(f"{student} has handed in nothing for {assignment}")
    lines: list[str] = []
    for path in sorted(released.glob("*.ipynb")):
        lines += _notebook(path, submitted / path.name)
    known = {path.name for path in released.glob("*.ipynb")}
    others = sorted(path.name for path in submitted.glob("*.ipynb") if path.name not in known)
    lines += [f"only in the submission: {quoted(name)}" for name in others]
    return "\n".join(lines)


def _notebook(released: Path, submitted: Path) -> Iterator[str]:
    if not submitted.is_file() or submitted.is_symlink():
        yield f"{submitted.name}: not handed in"
        return
    try:
        theirs = _cells(parse(submitted.read_bytes()))
    except RefusedError as error:
        yield f"{submitted.name}: {error}"
        return
    ours = _cells(json.loads(released.read_text(encoding="utf-8")))
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        where = f"{released.name}, {quoted(name)}"
        before, after = ours.get(name, ""), theirs.get(name, "")
        lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=2))[2:]
        if name not in theirs:
            yield f"=== {where}: deleted"
        elif lines:
            yield f"=== {where}" + ("" if name in ours else ": added")
            yield from (_plain(line) for line in lines)


def _cells(notebook: Notebook) -> dict[str, str]:
    """The text of each cell: under its nbgrader name, or for cells without one under its text's place among them."""
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for cell in notebook["cells"]:
        cell = cell if isinstance(cell, dict) else {}
        source = cell.get("source", "")
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        name = grade_id(cell)
        if not name:
            first = next((line for line in text.split("\n") if line.strip()), "empty")
            name = f"a cell without a name: {first[:40]}"
        seen[name] = seen.get(name, 0) + 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = text
    return found


def _plain(line: str) -> str:
    """Nothing that steers a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "?" for letter in line)
