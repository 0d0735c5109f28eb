"""A notebook of a problem set as the learner's own check reads it: its code cells, and its written answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autograder.course.course import CourseError
from autograder.course.model_answers import answered
from autograder.intake.canonical import RefusedError, parse


@dataclass(frozen=True)
class Cell:
    """A code cell. `ours`: locked code of the problem set, a test or not."""

    name: str
    source: str
    is_test: bool
    ours: bool
    points: float


@dataclass(frozen=True)
class Written:
    """A cell that a person grades. `answered`: it holds more than the stub."""

    name: str
    points: float
    answered: bool


def read_cells(path: Path) -> tuple[list[Cell], list[Written]]:
    """The notebook's code cells that hold anything, and the cells that a person grades."""
    import nbformat

    if path.is_dir():
        inside = ", ".join(sorted(file.name for file in path.glob("*.ipynb"))) or "none"
        raise CourseError(f"{path} is a folder; name a notebook (in this folder: {inside})")
    if not path.is_file():
        raise CourseError(f"{path} is missing")
    try:
        parse(path.read_bytes())
        notebook = nbformat.read(path, as_version=4)
    except RefusedError as error:
        raise CourseError(f"{path.name}: {error}") from None
    except Exception as error:
        raise CourseError(f"{path} is not a valid notebook: {str(error).splitlines()[0]}") from error
    cells, written = [], []
    for number, cell in enumerate(notebook.cells, start=1):
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade") and about.get("solution"):
            points = float(about.get("points", 0))
            written.append(Written(str(about.get("grade_id", "")), points, answered(cell)))
        if cell.cell_type == "code" and cell.source.strip():
            solution = bool(about.get("solution"))
            is_test = bool(about.get("grade")) and not solution
            ours = is_test or (bool(about.get("locked")) and not solution)
            name = about.get("grade_id") or f"number {number}"
            cells.append(Cell(name, cell.source, is_test, ours, float(about.get("points", 0))))
    if not any(cell.is_test for cell in cells):
        raise CourseError(f"there is no test in {path}: it is not the notebook of a problem set")
    return cells, written
