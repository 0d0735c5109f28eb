"""Runs an assignment's test cells, hidden parts included, in this process with other answers in the learner's place.

That is quick; the same on the way of a submission, in the sandbox, is `python -m autograder prove`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.course import source
from autograder.proof import in_process

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "exercises"


@dataclass(frozen=True)
class Assignment:
    """The source notebook of an assignment that has one."""

    name: str
    cells: source.Source

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.cells.cells if cell.kind == "test")

    def solved(self) -> dict[str, Any]:
        """The names of the notebook after its answers and set-up cells were run."""
        names: dict[str, Any] = {"__name__": "__main__"}
        for cell in self.cells.cells:
            if cell.kind in ("answer", "setup"):
                exec(cell.source, names)
        return names

    def lost(self, answers: dict[str, str]) -> dict[str, str]:
        """The test cells that fail with these answers in place of the reference's, and what they say."""
        return dict(in_process.failures(self.cells, answers))

    def score(self, answers: dict[str, str]) -> float:
        lost = self.lost(answers)
        return sum(cell.points for cell in self.cells.cells if cell.kind == "test" and cell.name not in lost)


@lru_cache
def assignment(name: str) -> Assignment:
    (path,) = (COURSE / "source" / name).glob("*.ipynb")
    return Assignment(name, source.read(path))
