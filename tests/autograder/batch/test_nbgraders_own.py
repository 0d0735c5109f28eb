"""nbgrader's own commands and formgrader's numbers in a course that uses this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from klass import KINDS, PS, hand_in, make_class
from shell import Shell

from autograder.course.course import Course, open_nbgrader

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small assignment: tests of 2 and 3 points, an essay of 4."""
    make_class(tmp_path / "course")
    return tmp_path / "course"


def configured(root: Path, text: str) -> Any:
    with (root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return open_nbgrader(Course(root), root)


def maxima(about: dict[str, Any]) -> list[float]:
    return [about[key] for key in ("max_score", "max_code_score", "max_written_score")]


def test_formgrader_shows_maxima_without_the_bonus_everywhere(root: Path) -> None:
    api = configured(root, f'c.Points.bonus = {{"{PS}": ["test-minus-*"]}}')
    with api.gradebook as gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission(PS, "ada")
    assert maxima(api.get_assignment(PS)) == [6, 2, 4]
    assert [maxima(one) for one in api.get_assignments()] == [[6, 2, 4]]
    assert [maxima(one) for one in api.get_notebooks(PS)] == [[6, 2, 4]]
    with api.gradebook as gradebook:
        assert [maxima(one) for one in gradebook.submission_dicts(PS)] == [[6, 2, 4]]
        assert maxima(gradebook.find_submission(PS, "ada").to_dict()) == [6, 2, 4]
        assert maxima(gradebook.find_submission_notebook(PS, PS, "ada").to_dict()) == [6, 2, 4]
    assert [one["max_score"] for one in api.get_students()] == [6]
    assert api.get_student("ada")["max_score"] == 6


def test_without_a_bonus_the_maxima_are_those_of_nbgrader(root: Path) -> None:
    assert maxima(configured(root, "c.Points.bonus = {}").get_assignment(PS)) == [9, 5, 4]


def test_nbgrader_autograde_exits_3_where_there_is_no_sandbox_and_1_where_the_name_is_wrong(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(root, "ada", KINDS[0])
    with (root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write('import os\nos.environ["PATH"] = "/nowhere"\n')
    shell = Shell(root)
    assert shell.type(f"nbgrader autograde {PS}") == 3, shell.output
    assert "bubblewrap" in shell.output
    assert shell.type("nbgrader autograde nothing") == 1, shell.output
