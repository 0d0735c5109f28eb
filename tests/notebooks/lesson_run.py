"""A lesson as its tests see it: prose, cells, and what the cells printed when it was run from clean."""

import re
import sys
from functools import cached_property
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
STORE = ROOT / ".pytest_cache" / "lessons"
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
LIMIT = 280  # seconds for one cell; a whole lesson takes less than a minute on a machine with nothing else to do


def _run(name: str) -> NotebookNode | str:
    """The executed lesson, or what went wrong."""
    sys.path.insert(0, str(ROOT / "book"))
    try:
        from lesson import LessonError
        from lesson_store import run_once
    finally:
        sys.path.pop(0)
    try:
        return run_once(ROOT, f"notebooks/{name}.ipynb", STORE, timeout=LIMIT)
    except LessonError as error:
        return str(error)


class Lesson:
    """`name` without .ipynb. Nothing is run before `outputs` are asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = ROOT / "notebooks" / f"{name}.ipynb"
        self.source = nbformat.read(self.path, as_version=4)

    @property
    def markdown(self) -> list[NotebookNode]:
        return [cell for cell in self.source.cells if cell.cell_type == "markdown"]

    @property
    def code(self) -> list[NotebookNode]:
        return [cell for cell in self.source.cells if cell.cell_type == "code"]

    @property
    def prose(self) -> str:
        """All text, each paragraph on one line."""
        return "\n".join(cell.source for cell in self.markdown)

    @cached_property
    def _outcome(self) -> NotebookNode | str:
        return _run(self.name)

    @property
    def executed(self) -> NotebookNode:
        """The notebook with its outputs; a lesson that does not run fails every test that asks, and is run once."""
        if isinstance(self._outcome, str):
            pytest.fail(self._outcome, pytrace=False)
        return self._outcome

    @property
    def cpu_seconds(self) -> float:
        return self.executed.metadata["course"]["cpu_seconds"]

    def cell(self, cell_id: str) -> NotebookNode:
        return next(cell for cell in self.executed.cells if cell.id == cell_id)

    def text(self, cell_id: str) -> str:
        """What a cell printed, and its tables as text."""
        shown = []
        for output in self.cell(cell_id).outputs:
            if output.output_type == "stream":
                shown.append(output.text)
            elif "image/png" not in output.get("data", {}):
                shown.append(output.get("data", {}).get("text/plain", "") + "\n")
        return "".join(shown)

    def data(self, cell_id: str) -> list[dict[str, str]]:
        """What a cell showed besides text, by kind."""
        return [output.data for output in self.cell(cell_id).get("outputs", []) if "data" in output]

    def row(self, cell_id: str, label: str) -> list[str]:
        """The columns of the printed line that starts with `label`, the label left out."""
        lines = [line.strip() for line in self.text(cell_id).splitlines()]
        found = next(line for line in lines if line.startswith(label))
        return re.split(r"\s{2,}", found[len(label) :].strip())

    def number(self, cell_id: str, pattern: str) -> float:
        """The number in the first group of `pattern`, which what the cell printed must match."""
        found = re.search(pattern, self.text(cell_id))
        assert found, f"{cell_id} printed:\n{self.text(cell_id)}"
        return float(found.group(1).replace(",", ""))
