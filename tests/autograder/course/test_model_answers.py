"""The model answer of a written question opens once it is answered, and only where the course allows it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from small_course import ESSAY_STUB, cell, released, text, write

from autograder.__main__ import main
from autograder.course import model_answers

ROOT = Path(__file__).parents[3]
ESSAY = "Doubling adds a number to itself, so the result of an even or odd number is even."
MODEL = "### BEGIN SOLUTION\n**Model.** Twice a number is even.\n\n*Rubric.* Two points for *even*.\n### END SOLUTION"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one assignment, `small`, whose configuration shows model answers."""
    source = released()
    cell(source, "essay")["source"] = MODEL
    write(tmp_path / "course" / "source" / "small" / "small.ipynb", source)
    (tmp_path / "course" / "nbgrader_config.py").write_text("c = get_config()\nc.ModelAnswers.show = True\n")
    return tmp_path / "course"


def mine(folder: Path, essay: str) -> Path:
    """A learner's copy of the notebook, with an essay in it."""
    notebook = copy.deepcopy(released())
    cell(notebook, "double")["source"] = "def double(x):\n    return 2 * x"
    cell(notebook, "essay")["source"] = essay
    return write(folder / "work" / "small.ipynb", notebook)


def ask(path: Path, course: Path, *more: str) -> int:
    return main(["check", str(path), "--course", str(course), *more])


def test_the_model_answer_and_the_rubric_are_shown_after_an_answer(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(mine(tmp_path, ESSAY), course, "--answer", "essay") == 0
    told = "essay, 4 points\n\n**Model.** Twice a number is even.\n\n*Rubric.* Two points for *even*.\n"
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("essay", [ESSAY_STUB, "", "It is even, I think.", f"{ESSAY_STUB}\n\nIt is even."])
def test_the_stub_and_a_few_words_open_nothing(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], essay: str
) -> None:
    assert ask(mine(tmp_path, essay), course, "--answer", "essay") == 2
    told = capsys.readouterr()
    assert "essay is not answered yet: write at least 10 words and save" in told.err
    assert "Model" not in told.out + told.err


def test_the_instructor_switches_them_off_with_one_setting(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "nbgrader_config.py").write_text("c = get_config()\nc.ModelAnswers.show = False\n")
    assert ask(mine(tmp_path, ESSAY), course, "--answer", "essay") == 2
    assert "shows no model answer for essay" in capsys.readouterr().err


def test_a_course_that_does_not_mention_them_shows_none(course: Path) -> None:
    (course / "nbgrader_config.py").write_text("c = get_config()\n")
    assert model_answers.of_notebook(course, "small") == []


def test_a_copy_of_the_course_without_its_sources_shows_none(course: Path) -> None:
    (course / "source" / "small" / "small.ipynb").unlink()
    assert model_answers.of_notebook(course, "small") == []


def test_a_question_begins_at_the_last_heading_of_a_part(tmp_path: Path) -> None:
    notebook = released()
    cell(notebook, "essay")["source"] = MODEL
    notebook["cells"][-1:-1] = [text("Measure it."), text("## 2. Doubling"), text("Why is it even?")]
    (found,) = model_answers.read(write(tmp_path / "small.ipynb", notebook))
    assert found.question == "## 2. Doubling\n\nWhy is it even?"


def test_an_unknown_question_is_refused_with_the_known_ones(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(mine(tmp_path, ESSAY), course, "--answer", "essays") == 2
    assert "no written answer 'essays' (written answers: essay)" in capsys.readouterr().err


def test_the_check_says_how_to_open_each(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = course / "source" / "small" / "small.ipynb"
    notebooks = [json.loads(file.read_text()) for file in (source, mine(tmp_path, ESSAY))]
    for notebook, content in zip(notebooks, (MODEL, ESSAY_STUB), strict=True):
        notebook["cells"].append(text(content, "second", grade=True, solution=True, locked=False, points=2))
    write(source, notebooks[0])
    path = write(tmp_path / "work" / "small.ipynb", notebooks[1])
    assert ask(path, course) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"Model answer and rubric of essay (4 points): python -m autograder check {path} --answer essay",
        "Model answer and rubric of second (2 points): answer it first",
    ]


SOURCES = sorted((ROOT / "exercises" / "source").glob("*/*.ipynb"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_released_notebook_holds_a_model_answer(source: Path) -> None:
    bundle = (ROOT / "exercises" / "release" / source.stem / source.name).read_text(encoding="utf-8")
    found = model_answers.read(source)
    assert found
    for one in found:
        assert "*Rubric.*" in one.text
        for line in filter(None, one.text.splitlines()):
            assert line.replace('"', '\\"') not in bundle
