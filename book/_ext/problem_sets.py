"""Sphinx extension: `{problem-sets}`, a table of the graded notebooks, read from their sources."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "_problem_sets"  # where build.py puts exercises/source
BONUS = re.compile(r"\| *\d+ *\| *bonus\b.*\| *(\d+) *\|")  # a part's row in the notebook's own table


@dataclass(frozen=True)
class ProblemSet:
    name: str
    title: str
    points: float  # without the bonus
    bonus: float
    by_hand: float  # of all points: graded by a person


def read_all(folder: Path) -> list[ProblemSet]:
    """One entry for each notebook below `folder`, in order of name. Raises ValueError for one without a title."""
    found = []
    for file in sorted(folder.glob("*/*.ipynb")):
        cells = json.loads(file.read_text("utf-8"))["cells"]
        lines = [
            line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).splitlines()
        ]
        title = next((line.removeprefix("# ") for line in lines if line.startswith("# ")), None)
        if title is None:
            raise ValueError(f"{file.name} has no title")
        graded = [cell["metadata"]["nbgrader"] for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]
        by_hand = sum(mark["points"] for mark in graded if mark.get("solution"))
        bonus = sum(float(row[1]) for line in lines if (row := BONUS.fullmatch(line)))
        points = sum(mark["points"] for mark in graded) - bonus
        found.append(ProblemSet(file.parent.name, title, points, bonus, by_hand))
    return found


class ProblemSets(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        rows = ["| Problem set | Title | Points |", "|---|---|---|"]
        for one in read_all(Path(self.env.srcdir) / FOLDER):
            bonus = f", and a bonus of {one.bonus:g}" if one.bonus else ""
            by_hand = f"; {one.by_hand:g} of them graded by hand" if one.by_hand else ""
            rows.append(f"| `{one.name}` | {one.title} | {one.points:g}{bonus}{by_hand} |")
        return self.parse_text_to_nodes("\n".join(rows))


def setup(app: Sphinx) -> dict:
    app.add_directive("problem-sets", ProblemSets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
