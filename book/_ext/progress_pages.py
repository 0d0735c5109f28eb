"""Sphinx extension: the reader's own pages, and the data that they need.

`{todays-review}` and `{my-progress}` are places for the modules of interactives/static; all quizzes are written as one
JSON file for the review. `{first-questions}` shows the opening questions of a lesson, as a notebook's cell does.
"""

import json
from pathlib import Path

from docutils import nodes
from practice import exercises
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from interactives import quiz
from interactives.base import place
from interactives.questions import OpeningQuestions

QUIZZES = "_static/course/quizzes.json"


class TodaysReview(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        paper = "<p>The review runs in the browser: it asks what you missed on earlier days.</p>"
        return [nodes.raw("", place("review", {"quizzes": QUIZZES}, paper), format="html")]


class MyProgress(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        found = [quiz.load(lesson) for lesson in quiz.lessons()]
        state = {
            "lessons": [[one.lesson, one.title, one.xp] for one in found],
            "programs": [[one["id"], one["title"], one["xp"]] for one in exercises(Path(self.env.srcdir))],
        }
        paper = "<p>Progress is kept in the browser and shown there.</p>"
        return [nodes.raw("", place("progress", state, paper), format="html")]


class FirstQuestions(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        asked = OpeningQuestions(self.arguments[0])
        return [nodes.raw("", place("opening", asked.start_state(), asked.paper()), format="html")]


def _write_quizzes(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        data = {lesson: quiz.load(lesson).as_json() for lesson in quiz.lessons()}
        target = Path(app.outdir) / QUIZZES
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(data, ensure_ascii=False), "utf-8")


def setup(app: Sphinx) -> dict:
    app.add_directive("todays-review", TodaysReview)
    app.add_directive("my-progress", MyProgress)
    app.add_directive("first-questions", FirstQuestions)
    app.connect("build-finished", _write_quizzes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
