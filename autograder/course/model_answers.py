"""The model answer and the rubric of each question that a person grades, for a learner who has answered it.

They are read from the source notebook, between its solution markers, and only where the course's configuration allows
it. A released notebook never holds them, and neither does a copy of the course without `source/`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traitlets import Bool
from traitlets.config import Configurable

from autograder.course import CONFIG
from autograder.course.course import load_config
from autograder.course.source import grade_id, nbgrader_metadata

FEWEST_WORDS = 10  # of an answer; less is a note or the stub
_STUB = "YOUR ANSWER HERE"
_MARKED = re.compile(r"^### BEGIN SOLUTION\n(.*?)^### END SOLUTION$", re.MULTILINE | re.DOTALL)


class ModelAnswers(Configurable):
    """What a course's configuration says about model answers."""

    show = Bool(
        False,
        help="whether a learner may open the model answer and the rubric of a question that a person grades, after "
        "answering it: in `python -m autograder check` and on the site",
    ).tag(config=True)


@dataclass(frozen=True)
class ModelAnswer:
    """A question that a person grades: its cell's name, its points, its text and the model answer, both Markdown."""

    name: str
    points: float
    question: str
    text: str


def shown(course: Path) -> bool:
    """Whether the course's configuration lets learners open model answers; False where there is no configuration."""
    return (course / CONFIG).is_file() and ModelAnswers(config=load_config(course)).show


def read(source: Path) -> list[ModelAnswer]:
    """The questions of a source notebook that a person grades. Raises OSError or ValueError."""
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    found: list[ModelAnswer] = []
    question: list[str] = []  # what was said since the last heading of a part, or the last cell that is graded
    for cell in cells:
        text, about = "".join(cell["source"]), nbgrader_metadata(cell)
        marked = _MARKED.search(text)
        if about.get("grade") and about.get("solution") and marked:
            points = float(about["points"])
            found.append(ModelAnswer(grade_id(cell), points, "\n\n".join(question), marked[1].strip()))
        if about.get("grade"):
            question = []
        elif cell["cell_type"] == "markdown":
            question = [text] if text.startswith("## ") else [*question, text]
    return found


def of_notebook(course: Path, name: str) -> list[ModelAnswer]:
    """The model answers for a learner's copy of the notebook `name`; empty where the course does not show them."""
    sources = sorted(course.glob(f"source/*/{name}.ipynb"))
    return read(sources[0]) if sources and shown(course) else []


def answered(cell: dict[str, Any]) -> bool:
    """Whether a cell of a learner's notebook holds an answer, not only the stub or a few words."""
    text = "".join(cell["source"]).replace(_STUB, "")
    return len(text.split()) >= FEWEST_WORDS
