"""Quizzes: one YAML file a lesson, every key, number and distractor computed from `reference_impl` when it is loaded.

A quiz file holds expressions, never results. `load` evaluates them for each variant of a question (one
draw of its `vary` values), fills the {fields} of the texts with the same names, checks that exactly one answer is right
and every wrong one is a named mistake, and returns what the browser needs. The browser compares; it computes no key.

`quiz_expressions` says which names an expression may use. Standard library and PyYAML only.
"""

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from interactives import richtext
from interactives.quiz_expressions import (
    QuizError,
    evaluate,
    filled,
    let,
    names_of_the_course,
    need,
    number,
    only,
    shown,
    text_of,
)

FOLDER = Path(__file__).parent / "quizzes"
MOST_VARIANTS = 60
FILE_FIELDS = {"lesson", "title", "pass", "xp", "let", "opening", "questions"}
COMMON = {"id", "kind", "prompt", "explain", "vary", "let"}
FIELDS = {
    "numeric": COMMON | {"answer", "unit", "tolerance", "mistakes", "format"},
    "choice": COMMON | {"options"},
    "ordering": COMMON | {"items"},
}
OPTION_FIELDS = {"text", "value", "correct", "mistake", "explain"}
MISTAKE_FIELDS = {"value", "name", "explain"}


@dataclass(frozen=True)
class Question:
    """One question with all its variants, each ready for the browser (see `_numeric`, `_choice`, `_ordering`)."""

    id: str
    kind: str  # numeric, choice, ordering
    variants: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "kind": self.kind, "variants": list(self.variants)}


@dataclass(frozen=True)
class QuizFile:
    """The content of one file. `pass_mark` of `len(questions)` earn `xp` points."""

    lesson: str
    title: str
    pass_mark: int
    xp: int
    opening: tuple[Question, ...]
    questions: tuple[Question, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "lesson": self.lesson,
            "title": self.title,
            "pass": self.pass_mark,
            "xp": self.xp,
            "opening": [question.as_json() for question in self.opening],
            "questions": [question.as_json() for question in self.questions],
        }


@cache
def load(lesson: str) -> QuizFile:
    """The quiz of a lesson, by the file's name without `.yml`. Raises QuizError."""
    path = FOLDER / f"{lesson}.yml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.yml"))) or "none"
        raise QuizError(f"there is no quiz {lesson!r}; there are: {known}")
    return read(path.read_text(encoding="utf-8"), path.name)


def lessons() -> list[str]:
    """Names of all quizzes, in the order of the lessons."""
    return sorted(file.stem for file in FOLDER.glob("*.yml"))


def read(text: str, name: str) -> QuizFile:
    """The quiz in a file's text; `name` is what messages call the file. Raises QuizError."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise QuizError(f"{name}: not YAML: {error}") from error
    if not isinstance(data, dict):
        raise QuizError(f"{name}: it must hold lesson, pass, xp, opening and questions")
    only(data, FILE_FIELDS, name)
    lesson = need(data, "lesson", str, name)
    if not name.startswith(lesson):
        raise QuizError(f"{name}: `lesson` is {lesson!r}, which is not the file's name")
    names = let(names_of_the_course(), data.get("let", {}), f"{name}, let")

    seen: set[str] = set()
    groups: dict[str, tuple[Question, ...]] = {}
    for group in ("opening", "questions"):
        found = []
        for index, raw in enumerate(need(data, group, list, name), start=1):
            question = _question(raw, names, f"{name}, {group} {index}")
            if question.id in seen:
                raise QuizError(f"{name}: two questions are called {question.id!r}")
            seen.add(question.id)
            found.append(question)
        groups[group] = tuple(found)
    quiz = QuizFile(
        lesson,
        str(data.get("title", lesson)),
        need(data, "pass", int, name),
        need(data, "xp", int, name),
        groups["opening"],
        groups["questions"],
    )
    if not 1 <= quiz.pass_mark <= len(quiz.questions):
        raise QuizError(f"{name}: pass is {quiz.pass_mark} of {len(quiz.questions)} questions")
    return quiz


# --- one question


def _question(raw: Any, names: dict[str, Any], where: str) -> Question:
    if not isinstance(raw, dict):
        raise QuizError(f"{where}: a question is a mapping with id, kind, prompt and explain")
    identifier = need(raw, "id", str, where)
    where = f"{where.split(',')[0]}, question {identifier}"
    kind = raw.get("kind")
    if kind not in FIELDS:
        raise QuizError(f"{where}: kind is {kind!r}, it must be one of {', '.join(FIELDS)}")
    only(raw, FIELDS[kind], where)
    vary = raw.get("vary", {})
    if not isinstance(vary, dict) or not all(isinstance(values, list) and values for values in vary.values()):
        raise QuizError(f"{where}: vary maps each name to a list of values")
    draws = list(itertools.product(*vary.values()))
    if len(draws) > MOST_VARIANTS:
        raise QuizError(f"{where}: {len(draws)} variants, at most {MOST_VARIANTS}")
    build = {"numeric": _numeric, "choice": _choice, "ordering": _ordering}[kind]
    variants = []
    for draw in draws:
        drawn = dict(zip(vary, draw, strict=True))
        told = f"{where} ({', '.join(f'{key} = {value}' for key, value in drawn.items())})" if drawn else where
        here = let({**names, **drawn}, raw.get("let", {}), f"{told}, let")
        variants.append(build(raw, here, told))
    return Question(identifier, kind, tuple(variants))


def _numeric(raw: dict, names: dict[str, Any], where: str) -> dict[str, Any]:
    """{prompt, answer, shown, unit, tolerance, mistakes: [{value, name, explain}], explain}"""
    answer = number(raw.get("answer"), names, f"{where}, answer")
    tolerance = raw.get("tolerance", 0.02)
    if not isinstance(tolerance, int | float) or not 0 <= tolerance < 0.5:
        raise QuizError(f"{where}: tolerance is relative, from 0 to below 0.5, got {tolerance!r}")
    names = {**names, "answer": answer}
    mistakes: list[dict[str, Any]] = []
    for index, entry in enumerate(raw.get("mistakes", []), start=1):
        spot = f"{where}, mistake {index}"
        only(entry, MISTAKE_FIELDS, spot)
        value = number(entry.get("value"), names, f"{spot}, value")
        if abs(value - answer) <= tolerance * abs(answer):
            raise QuizError(f"{spot}: {value:g} lies within the tolerance of the right answer {answer:g}")
        for other in mistakes:
            if abs(value - other["value"]) <= tolerance * abs(value):
                raise QuizError(f"{spot}: {value:g} cannot be told from the mistake {other['name']!r}")
        mistakes.append(
            {
                "value": value,
                "name": need(entry, "name", str, spot),
                "explain": text_of(entry, "explain", {**names, "x": value}, spot),
            }
        )
    return {
        "prompt": text_of(raw, "prompt", names, where),
        "answer": answer,
        "shown": shown(answer, raw.get("format"), where),
        "unit": str(raw.get("unit", "")),
        "tolerance": float(tolerance),
        "mistakes": mistakes,
        "explain": text_of(raw, "explain", names, where),
    }


def _choice(raw: dict, names: dict[str, Any], where: str) -> dict[str, Any]:
    """{prompt, options: [{text, correct, mistake, explain}], explain}, exactly one of them correct."""
    options: list[dict[str, Any]] = []
    for index, entry in enumerate(need(raw, "options", list, where), start=1):
        spot = f"{where}, option {index}"
        only(entry, OPTION_FIELDS, spot)
        correct = entry.get("correct", False) is True
        here = {**names, "x": evaluate(entry["value"], names, f"{spot}, value")} if "value" in entry else names
        if not correct and not entry.get("mistake"):
            raise QuizError(f"{spot}: a wrong option names its `mistake`")
        if correct and "mistake" in entry:
            raise QuizError(f"{spot}: the right option has no `mistake`")
        text, explain = (text_of(entry, field, here, spot) for field in ("text", "explain"))
        mistake = None if correct else str(entry["mistake"])
        options.append({"text": text, "correct": correct, "mistake": mistake, "explain": explain})
    if sum(option["correct"] for option in options) != 1:
        raise QuizError(f"{where}: exactly one option is `correct: true`")
    texts = [richtext.plain(option["text"]) for option in options]
    for words in texts:
        if texts.count(words) > 1:
            raise QuizError(f"{where}: two options read {words!r}")
    return {
        "prompt": text_of(raw, "prompt", names, where),
        "options": options,
        "explain": text_of(raw, "explain", names, where),
    }


def _ordering(raw: dict, names: dict[str, Any], where: str) -> dict[str, Any]:
    """{prompt, items, explain}, the items in the right order."""
    items = [
        filled(str(item), names, f"{where}, item {n}") for n, item in enumerate(need(raw, "items", list, where), 1)
    ]
    if not 3 <= len(items) <= 8 or len({richtext.plain(item) for item in items}) < len(items):
        raise QuizError(f"{where}: an ordering has 3 to 8 different items")
    return {
        "prompt": text_of(raw, "prompt", names, where),
        "items": items,
        "explain": text_of(raw, "explain", names, where),
    }
