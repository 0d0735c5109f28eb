"""Questions to a learner, for a cell and the page: `Quiz`, `OpeningQuestions`, `ClosingQuestions`, `Predict`.

The questions come from a lesson's quiz file (`quiz`), or for `Predict` from the cell itself. Answers stay in the
browser (`src/shared/store.js`). On paper the questions stand without their answers.
"""

import math
from html import escape
from typing import Any, ClassVar

import traitlets

from interactives import richtext
from interactives.base import Interactive, place, script
from interactives.quiz import Question, load
from interactives.quiz_expressions import shown


class _Asked(Interactive):
    """A figure whose start state is one dictionary, `data`, that `static/NAME.js` reads."""

    data = traitlets.Dict().tag(sync=True, state=True)
    _call: ClassVar[str] = ""

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs)
        page = place(self._figure, self.start_state(), self.paper())
        return {**bundle, "text/plain": str(self), "text/html": page}, metadata


class _OfLesson(_Asked):
    """Asks what a lesson's quiz file holds; QuizError where there is no such file or it is faulty."""

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        super().__init__(data=self.pick(load(lesson).as_json()))

    def pick(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the part of the file that this widget asks."""
        return data

    def questions(self) -> tuple[Question, ...]:
        return load(self.lesson).questions

    def __str__(self) -> str:
        return f'{type(self).__name__}("{self.lesson}")'

    def paper(self) -> str:
        listed = "".join(f"<li>{_on_paper(question)}</li>" for question in self.questions())
        heading = f'<p class="still-title"><strong>{escape(self.heading())}</strong></p>'
        return f'{heading}<ol class="still-questions">{listed}</ol>'

    def heading(self) -> str:
        found = load(self.lesson)
        return f"Lesson quiz: {len(found.questions)} questions, pass with {found.pass_mark}"


class Quiz(_OfLesson):
    """The seven questions of a lesson: `Quiz("01_prefill_and_decode")`."""

    _figure = "quiz"
    _esm = script("quiz")

    def pick(self, data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in data.items() if key != "opening"}


class OpeningQuestions(_OfLesson):
    """Three questions before the lesson; answers are kept, nothing is revealed."""

    _figure = "opening"
    _esm = script("opening")

    def pick(self, data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in data.items() if key != "questions"}

    def questions(self) -> tuple[Question, ...]:
        return load(self.lesson).opening

    def heading(self) -> str:
        return "Before you start"


class ClosingQuestions(OpeningQuestions):
    """The same three again, the first answers beside; then the key and why."""

    _figure = "closing"
    _esm = script("closing")

    def heading(self) -> str:
        return "The same questions again"


class Predict(_Asked):
    """A number to commit to before it is shown.

    question, explain: short texts (`richtext`). answer: computed in the cell, a finite number, in `unit`. tolerance:
    relative. key: names the prediction in the learner's progress, "01-step-ms". shown: the answer as text, where four
    significant digits are not what is wanted. Raises ValueError.
    """

    _figure = "predict"
    _esm = script("predict")

    def __init__(
        self, question: str, *, answer: float, key: str, unit: str = "", tolerance: float = 0.05, explain: str = "",
        shown: str | None = None,
    ) -> None:  # fmt: skip
        if not math.isfinite(answer):
            raise ValueError(f"prediction {key!r}: the answer must be a finite number, got {answer!r}")
        if not 0 <= tolerance < 1:
            raise ValueError(f"prediction {key!r}: tolerance is relative, 0 to 1, got {tolerance!r}")
        if not key.strip():
            raise ValueError("a prediction needs a key, such as '01-step-ms'")
        self.key = key
        variant = {
            "prompt": richtext.parse(question),
            "answer": float(answer),
            "shown": shown if shown is not None else _four_digits(float(answer)),
            "unit": unit,
            "tolerance": float(tolerance),
            "mistakes": [],
            "explain": richtext.parse(explain),
        }
        super().__init__(data={"key": key, "variant": variant})

    def __str__(self) -> str:
        return f"Predict(key={self.key!r})"

    def paper(self) -> str:
        prompt = richtext.to_html(self.data["variant"]["prompt"])
        unit = escape(self.data["variant"]["unit"])
        return f'<p class="still-title"><strong>Your prediction</strong></p><p>{prompt} ________ {unit}</p>'


def _four_digits(answer: float) -> str:
    return shown(answer, None, "prediction")


def _on_paper(question: Question) -> str:
    """The first variant without its key; an ordering's items stand in the order of the alphabet."""
    variant = question.variants[0]
    prompt = richtext.to_html(variant["prompt"])
    if question.kind == "numeric":
        return f"{prompt} ________ {escape(variant['unit'])}"
    texts = [option["text"] for option in variant["options"]] if question.kind == "choice" else variant["items"]
    listed = "".join(f"<li>{richtext.to_html(text)}</li>" for text in sorted(texts, key=richtext.plain))
    return f"{prompt}<ul>{listed}</ul>"
