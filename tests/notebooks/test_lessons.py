"""What holds for every lesson: how it opens and ends, what it promises, and that it runs from clean."""

import json
import re
from collections.abc import Callable
from html import unescape
from itertools import pairwise
from typing import Any

import pytest
from lesson_run import LESSONS, ROOT, Lesson
from nbformat import NotebookNode

from interactives import richtext
from interactives.quiz import load

Get = Callable[[str], Lesson]
SECONDS = 120  # of one core, kernel start and compiling included; a lesson takes a third of it on a quiet machine


@pytest.fixture(params=LESSONS)
def each(request: pytest.FixtureRequest, lesson: Get) -> Lesson:
    return lesson(request.param)


def test_the_lessons_are_numbered_without_a_gap_from_0_on() -> None:
    numbers = [int(name[:2]) for name in LESSONS]
    assert sorted(set(numbers)) == list(range(7))


def test_outputs_are_stripped_and_cell_ids_are_words_that_stay(each: Lesson) -> None:
    for cell in each.source.cells:
        assert re.fullmatch(r"[a-z0-9-]+", cell.id)
        assert re.search("[a-z]{3}", cell.id)
    for cell in each.code:
        assert cell.outputs == []
        assert cell.execution_count is None
    assert each.source.metadata.kernelspec.name == "python3"


def test_it_says_what_it_assumes_how_long_it_takes_and_where_to_go_on(each: Lesson) -> None:
    promises = ("**Time:**", "**You should know:**", "**How to read it:**", "## What to remember", "## The way on")
    for promise in (*promises, "## Sources"):
        assert promise in each.prose


def test_three_questions_open_it_and_come_back_at_the_end_with_a_quiz(each: Lesson) -> None:
    asked = [re.fullmatch(r'(\w+)\("(\w+)"\)', cell.source) for cell in each.code]
    assert [(found[1], found[2]) for found in asked if found] == [
        ("OpeningQuestions", each.name),
        ("ClosingQuestions", each.name),
        ("Quiz", each.name),
    ]


def test_numbers_are_committed_to_before_they_are_shown(each: Lesson) -> None:
    committed = [cell for cell in each.code if re.search(r"^Predict\(", cell.source, re.M)]
    assert len(committed) >= 6


def test_every_prediction_is_the_widget(each: Lesson) -> None:
    for cell in each.source.cells:
        assert "my_guess" not in cell.source, cell.id
        assert cell.cell_type == "code" or "**Predict" not in cell.source, cell.id


def test_what_would_give_an_answer_away_is_folded_on_the_page(each: Lesson) -> None:
    for cell, following in pairwise(each.source.cells):
        if cell.source.startswith("Predict(") and following.cell_type == "code" and shows_numbers(following):
            assert "hide-output" in following.metadata.get("tags", []), following.id


@pytest.mark.parametrize("name", LESSONS)
def test_explanations_are_folded_until_they_are_asked_for(name: str, lesson: Get) -> None:
    prose = lesson(name).prose
    assert "**Explain" not in prose
    folds = re.findall(r'<details class="explain"><summary>Explanation</summary>\n\n.+?\n\n</details>', prose, re.S)
    assert len(folds) == prose.count("<details") == prose.count("</details>") >= 6
    assert not any(re.search("^#", fold, re.M) for fold in folds)  # a heading in a fold would end it on the page


def shows_numbers(cell: NotebookNode) -> bool:
    return bool(re.search(r"print\(|table\(|plot_", cell.source))


def test_predictions_have_keys_of_their_own_lesson(each: Lesson) -> None:
    keys = re.findall(r'key="([^"]+)"', "\n".join(cell.source for cell in each.code))
    assert len(keys) == len(set(keys))
    assert all(key.startswith(each.name[:2] + "-") for key in keys)


def test_the_code_of_a_prediction_is_folded_away_since_it_says_the_answer(each: Lesson) -> None:
    for cell in each.code:
        if re.search(r"^Predict\(", cell.source, re.M):
            assert cell.metadata["jupyter"]["source_hidden"]  # in JupyterLab
            assert "remove-input" in cell.metadata["tags"]  # on the page
            assert cell.source.startswith("Predict(")  # it defines nothing that other cells need


def test_every_figure_has_a_description(each: Lesson) -> None:
    for cell in each.code:
        if re.search(r"^(plot_\w+\(|plt\.show\(\))", cell.source, re.M):
            assert len(cell.metadata["mystnb"]["image"]["alt"]) > 80


def test_links_to_other_lessons_lead_to_lessons(each: Lesson) -> None:
    for target in re.findall(r"\]\((\d\d[a-z]?_\w+\.ipynb)\)", each.prose):
        assert (ROOT / "notebooks" / target).is_file(), target


def test_code_fits_a_page(each: Lesson) -> None:
    for cell in each.code:
        if is_visible(cell):
            assert max(map(len, cell.source.splitlines())) <= 79, cell.id


def test_a_lesson_shows_at_most_90_lines_of_code(each: Lesson) -> None:
    lines = [line for cell in each.code if is_visible(cell) for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= 90


def test_the_imports_are_folded(each: Lesson) -> None:
    for cell in each.code:
        if re.search(r"^(import|from) ", cell.source, re.M):
            assert cell.metadata["jupyter"]["source_hidden"], cell.id
            assert "hide-input" in cell.metadata["tags"], cell.id


def is_visible(cell: NotebookNode) -> bool:
    return not {"hide-input", "remove-input"} & set(cell.metadata.get("tags", []))


def predictions(lesson: Lesson) -> list[dict[str, Any]]:
    """What each `Predict` of the lesson asks, as the page has it."""
    shown = [
        data["text/html"] for cell in lesson.executed.cells for data in lesson.data(cell.id) if "text/html" in data
    ]
    states = [re.search(r'data-interactive="predict"[^>]*data-state=["\']([^"\']+)["\']', html) for html in shown]
    return [json.loads(unescape(found[1]))["data"]["variant"] for found in states if found]


@pytest.mark.model
def test_the_explanation_of_a_prediction_states_its_answer(each: Lesson) -> None:
    asked = predictions(each)
    assert len(asked) >= 6
    for question in asked:
        explanation = richtext.plain(question["explain"]).replace("−", "-")
        numbers = [float(text.replace(",", "")) for text in re.findall(r"-?\d[\d,]*(?:\.\d+)?", explanation)]
        closest = min(abs(number - question["answer"]) for number in numbers)
        assert closest <= 0.01 * abs(question["answer"]), f"{explanation!r} does not say {question['answer']:g}"


@pytest.mark.model
def test_no_opening_question_is_a_prediction_of_the_lesson(each: Lesson) -> None:
    opening = [question.variants[0] for question in load(each.name).opening if question.kind == "numeric"]
    for question in predictions(each):
        for other in opening:
            same_answer = abs(other["answer"] - question["answer"]) <= 0.001 * abs(question["answer"])
            assert not (same_answer and other["unit"] == question["unit"]), richtext.plain(other["prompt"])


@pytest.mark.model
def test_it_runs_from_clean_on_one_core_without_a_gpu(each: Lesson) -> None:
    assert 1 < each.cpu_seconds < SECONDS, f"{each.cpu_seconds:.0f} s"


HOURS = {"about an hour": 60, "about an hour and a half": 90}
WORDS_A_MINUTE = 200


@pytest.mark.model
def test_it_fits_its_stated_time_for_a_reader_of_200_words_a_minute(each: Lesson) -> None:
    stated = re.search(r"\*\*Time:\*\* (about (?:an hour(?: and a half)?|(\d+) minutes))", each.prose)
    assert stated
    minutes = float(stated[2]) if stated[2] else HOURS[stated[1]]
    asked = [richtext.plain(question[part]) for question in predictions(each) for part in ("prompt", "explain")]
    words = len(" ".join([each.prose.split("## Sources")[0], *asked]).split())
    assert words / WORDS_A_MINUTE + each.cpu_seconds / 60 + len(asked) / 2 <= minutes  # a minute to think for each


@pytest.mark.model
def test_no_cell_writes_to_standard_error(each: Lesson) -> None:
    for cell in each.executed.cells:
        assert not [output for output in cell.get("outputs", []) if output.get("name") == "stderr"]
