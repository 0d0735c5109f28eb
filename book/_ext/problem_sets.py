"""Sphinx extension: `{problem-sets}`, a table of the graded notebooks, read from their sources, and
`{written-answers}`, the questions that a person grades, each with a place for an answer and, once that is written, the
model answer and its rubric (site/written.js). Where the course's configuration does not show model answers, the second
leaves nothing on the page.
"""

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from autograder.course import model_answers

FOLDER = "_problem_sets"  # where layout.py puts exercises/source
SHOWN = "model_answers_shown"  # a file there, where the course's configuration shows model answers
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


HINTS = re.compile(r"<details>.*?</details>\s*", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class WrittenAnswers(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / FOLDER
        if not (folder / SHOWN).exists():
            return self.parse_text_to_nodes("This course keeps its model answers for the feedback.")
        found: list[nodes.Node] = []
        for file in sorted(folder.glob("*/*.ipynb")):
            for one in model_answers.read(file):
                found += self._question(file.parent.name, one)
        return found

    def _question(self, assignment: str, one: model_answers.ModelAnswer) -> list[nodes.Node]:
        name = f"{assignment}/{one.name}"
        place = escape(name.replace("/", "-"))
        said = HEADING.sub(r"**\1**", HINTS.sub("", one.question))
        form = (
            f'<form class="written" data-written="{escape(name)}" data-words="{model_answers.FEWEST_WORDS}">'
            f'<label for="{place}">Your answer to {escape(name)}</label><textarea id="{place}" rows="8"></textarea>'
            '<p><button type="submit">Show the model answer</button> <span role="status"></span></p></form>'
            "<noscript><p>The model answer opens where scripts run.</p></noscript>"
            f'<div class="model-answer" tabindex="-1" aria-label="Model answer and rubric" role="group" hidden>'
        )
        return [
            nodes.rubric(text=f"{name}, {one.points:g} points"),
            *self.parse_text_to_nodes(said),
            nodes.raw("", form, format="html"),
            *self.parse_text_to_nodes(one.text),
            nodes.raw("", "</div>", format="html"),
        ]


def setup(app: Sphinx) -> dict:
    app.add_directive("problem-sets", ProblemSets)
    app.add_directive("written-answers", WrittenAnswers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
