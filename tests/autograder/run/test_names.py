"""Names that tests use come from the tests' process, also where an unlocked cell imports them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_course
from nbformat.v4 import new_code_cell
from tiny_course import ANSWERS, SETUP, Desk

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Object of type")]

FAKE = """class Anything:
    def __getattr__(self, name):
        return Anything()
    def __call__(self, *args, **kwargs):
        return Anything()
    def __eq__(self, other):
        return True
np = check_equal = check_raises = random_inputs = Anything()"""


def test_a_learner_who_replaces_the_courses_imports_changes_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_setup = tiny_course.source_notebook

    def unlocked() -> Any:
        notebook = with_setup()
        notebook.cells[0] = new_code_cell(SETUP)
        return notebook

    monkeypatch.setattr(tiny_course, "source_notebook", unlocked)
    desk = Desk(tmp_path)

    def replace(named: dict[str, Any], notebook: Any) -> None:
        notebook["cells"][0]["source"] = FAKE

    desk.hand_in("wrong", {name: f"def {name}(*a):\n    return np" for name in ANSWERS}, replace)
    assert set(desk.scores(desk.grade("wrong")).values()) == {0.0}
    desk.hand_in("right", ANSWERS)
    assert list(desk.reasons(desk.grade("right"))) == ["words"]  # which nobody answered
