"""The release step refuses an assignment that would leak a solution or whose grader is wrong, and names the cell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ps3_course import PS3, ROOT

from autograder.course.course import Course
from autograder.proof.release import ReleaseError, check_leaks, check_markers, prove

SOURCE = ROOT / "exercises/source" / PS3 / f"{PS3}.ipynb"


def changed(folder: Path, cell_name: str, change: Callable[[str], str]) -> Path:
    """A copy of problem set 3 with the source of one cell changed."""
    notebook = json.loads(SOURCE.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == cell_name:
            before = "".join(cell["source"])
            cell["source"] = change(before)
            assert cell["source"] != before
    path = folder / SOURCE.name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("cell", "removed", "message"),
    [
        ("pack", "    ### BEGIN SOLUTION\n", "cell pack: END SOLUTION without BEGIN SOLUTION"),
        ("pack", "    ### END SOLUTION", "cell pack: BEGIN SOLUTION without END SOLUTION"),
        ("pack-order", "### BEGIN HIDDEN TESTS\n", "cell pack-order: END HIDDEN TESTS without BEGIN HIDDEN TESTS"),
        ("pack-order", "### END HIDDEN TESTS", "cell pack-order: BEGIN HIDDEN TESTS without END HIDDEN TESTS"),
        ("what-would-you-store", "### BEGIN SOLUTION\n", "cell what-would-you-store: END SOLUTION without"),
    ],
)
def test_one_missing_marker_stops_the_release(tmp_path: Path, cell: str, removed: str, message: str) -> None:
    path = changed(tmp_path, cell, lambda source: source.replace(removed, ""))
    with pytest.raises(ReleaseError, match=message):
        check_markers(path)


def test_a_solution_cell_without_any_marker_stops_the_release(tmp_path: Path) -> None:
    path = changed(
        tmp_path, "unpack", lambda source: source.replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "")
    )
    with pytest.raises(ReleaseError, match="cell unpack: a solution cell without BEGIN SOLUTION and END SOLUTION"):
        check_markers(path)


def test_a_solution_in_a_cell_that_is_not_marked_as_one_stops_the_release(tmp_path: Path) -> None:
    path = changed(tmp_path, "imports", lambda source: f"{source}\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION")
    with pytest.raises(ReleaseError, match="cell imports: BEGIN SOLUTION in a cell that is not marked as a solution"):
        check_markers(path)


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("    return np.rint(ratio).astype(np.int8), scales", "groupwise"),
        ("rng = random_inputs(20_260_304)", "groupwise-values"),
    ],
)
def test_a_bundle_that_holds_a_line_of_a_solution_or_hidden_test_is_found(tmp_path: Path, line: str, cell: str) -> None:
    released = tmp_path / "released"
    released.mkdir()
    (released / "notes.txt").write_text(f"remember:\n{line}\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match=f"cell {cell}: the released notes.txt holds"):
        check_leaks(SOURCE.parent, released)


def small_course(folder: Path, solution: str, test: str) -> Course:
    """A course of one assignment with one solution cell and one test cell of 2 points."""

    def cell(name: str, source: str, **kind: Any) -> dict[str, Any]:
        nbgrader = {
            "grade": False,
            "solution": False,
            "locked": False,
            "task": False,
            "schema_version": 3,
            "grade_id": name,
        }
        return {
            "cell_type": "code", "id": name, "source": source, "outputs": [], "execution_count": None,
            "metadata": {"nbgrader": nbgrader | kind},
        }  # fmt: skip

    answer = f"def double(x):\n    ### BEGIN SOLUTION\n    {solution}\n    ### END SOLUTION"
    cells = [cell("answer", answer, solution=True), cell("test", test, grade=True, locked=True, points=2)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / "source" / "ps" / "ps.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "nbgrader_config.py").write_text((ROOT / "exercises/nbgrader_config.py").read_text(encoding="utf-8"))
    return Course(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Object of type <Submitted")
def test_a_stub_that_earns_points_stops_the_release_and_writes_nothing(tmp_path: Path) -> None:
    course = small_course(tmp_path / "course", "return 2 * x", "assert callable(double)")
    with pytest.raises(ReleaseError, match="cell test: the stub scores 2, not 0"):
        prove(course, "ps", tmp_path / "release")
    assert not (tmp_path / "release").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Object of type <Submitted")
def test_a_solution_that_fails_its_own_test_stops_the_release_with_the_reason(tmp_path: Path) -> None:
    course = small_course(tmp_path / "course", "return 3 * x", "assert double(2) == 4, 'double(2) must be 4'")
    with pytest.raises(
        ReleaseError, match=r"cell test: the solution scores 0, not 2 \(AssertionError: double\(2\) must"
    ):
        prove(course, "ps", tmp_path / "release")
