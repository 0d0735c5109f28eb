"""What holds for the text of every problem set: a learner can do it alone, and what it says to try works."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
import released
from in_process import COURSE, assignment

NAMES = sorted(path.name for path in (COURSE / "source").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_it_says_how_long_it_takes_shows_an_example_and_marks_what_a_gpu_adds(name: str) -> None:
    text = released.text(name)
    assert re.search(r"Time: \d+ to \d+ minutes", text)
    assert "example" in text
    assert "No GPU is needed" in text
    assert "With a GPU" in text


@pytest.mark.parametrize("name", NAMES)
def test_each_part_that_asks_for_code_has_three_hints(name: str) -> None:
    released.check_hints(name)


@pytest.mark.parametrize("name", ["ps1_prefill_decode", "ps5_sizing"])
def test_the_code_to_try_runs_after_the_solutions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With arrays of a tenth of the size in each direction."""
    names = assignment(name).solved() | {"np": np}
    (code,) = re.findall(r"^```python\n(.*?)^```$", released.text(name), re.MULTILINE | re.DOTALL)
    exec(code.replace("20000", "2000").replace("5000", "500"), names)
    assert re.search(r"\d", capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_the_instructors_page_tells_time_prerequisites_tests_rubric_and_how_to_change_numbers(name: str) -> None:
    page = (COURSE / "instructor" / f"{name}.md").read_text(encoding="utf-8")
    for word in ("**Time**", "**Before it**", "**Points**", "(6 points)|by hand", "change the numbers"):
        assert re.search(re.escape(word).replace(r"\|", "|").replace(r"\(6 points\)", r"\d points"), page), word
    for cell in assignment(name).cells.cells:
        if cell.kind == "test":
            row = rf"\|[^|]*`{cell.name}`[^|]*\|[^|]*\b{cell.points:g}\b[^|]*\|"
            assert re.search(row, page), f"{cell.name}: {cell.points:g}"


@pytest.mark.parametrize("name", NAMES)
def test_each_hidden_part_says_what_kind_of_input_comes_before_it_calls_a_learners_function(name: str) -> None:
    known = assignment(name).cells
    learners = known.learners_names | {"Memory"}
    for cell in known.cells:
        for first, last in cell.hidden:
            lines = range(first, last + 1)
            calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
            asked = [
                node.lineno for node in calls if getattr(node.func, "id", "") == "think_of" and node.lineno in lines
            ]
            used = [
                node.lineno
                for node in ast.walk(ast.parse(cell.source))
                if isinstance(node, ast.Name) and node.id in learners and node.lineno in lines
            ]
            assert asked, cell.name
            assert not used or min(asked) < min(used), cell.name
