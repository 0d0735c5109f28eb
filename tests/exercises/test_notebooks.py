"""What every problem set's notebook promises: its points, its hints, and a released bundle that gives nothing away."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from in_process import COURSE

from autograder.release import check_leaks, check_markers

KNOWN = sorted(path.name for path in (COURSE / "source").iterdir() if path.is_dir())


def cells(name: str, folder: str = "source") -> list[dict[str, Any]]:
    found = json.loads((COURSE / folder / name / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in found]


def about(cell: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return found


@pytest.mark.parametrize("name", KNOWN)
def test_a_source_notebook_is_ready_for_release(name: str) -> None:
    check_markers(COURSE / "source" / name / f"{name}.ipynb")
    ids = [cell["id"] for cell in cells(name)]
    names = [about(cell)["grade_id"] for cell in cells(name) if about(cell)]
    assert len(set(ids)) == len(ids)
    assert len(set(names)) == len(names)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells(name))


@pytest.mark.parametrize("name", KNOWN)
def test_the_points_promised_for_each_part_are_the_points_of_its_cells(name: str) -> None:
    title = cells(name)[0]["source"]
    rows = [line.split("|") for line in title.splitlines() if line.startswith("| ") and line[2].isdigit()]
    promised = {f"part-{row[1].strip()}": float(row[3]) for row in rows}
    earned: dict[str, float] = {}
    part = ""
    for cell in cells(name):
        part = cell["id"] if re.fullmatch(r"part-\d+", cell["id"]) else part
        earned[part] = earned.get(part, 0) + about(cell).get("points", 0)
    assert earned.pop("") == 0
    assert earned == promised


@pytest.mark.parametrize("name", KNOWN)
def test_the_first_line_of_each_test_says_its_name_and_its_points(name: str) -> None:
    for cell in cells(name):
        if about(cell).get("grade") and cell["cell_type"] == "code":
            points = about(cell)["points"]
            first = f"# Test {about(cell)['grade_id']} ({points} point{'' if points == 1 else 's'})"
            assert cell["source"].split("\n")[0] == first


@pytest.mark.parametrize("name", ["ps2_batching", "ps4_speculative"])
def test_each_part_with_code_has_three_hints_behind_folds(name: str) -> None:
    parts = [cell["id"] for cell in cells(name) if re.fullmatch(r"part-\d+", cell["id"])][:-1]
    for part in parts:
        (hints,) = [cell["source"] for cell in cells(name) if cell["id"] == part.replace("part", "hints")]
        assert hints.count("<details><summary>Hint ") == hints.count("</details>") == 3


@pytest.mark.parametrize("name", KNOWN)
def test_the_released_bundle_holds_no_solution_and_no_hidden_test(name: str) -> None:
    released = COURSE / "release" / name
    check_leaks(COURSE / "source" / name, released)
    text = (released / f"{name}.ipynb").read_text(encoding="utf-8")
    assert "HIDDEN TESTS" not in text
    assert "BEGIN SOLUTION" not in text


@pytest.mark.parametrize("name", KNOWN)
def test_the_released_bundle_is_that_of_the_source(name: str) -> None:
    """A cell that is changed in the source must be released again: outside of the marked parts the text is the same."""
    released = {about(cell).get("grade_id", cell["id"]): cell["source"] for cell in cells(name, "release")}
    for cell in cells(name):
        if about(cell).get("solution"):
            continue
        shown, hidden = [], False
        for line in cell["source"].split("\n"):
            hidden = (hidden or "BEGIN HIDDEN" in line) and "END HIDDEN" not in line
            if not hidden and "END HIDDEN" not in line:
                shown.append(line)
        assert released[about(cell).get("grade_id", cell["id"])].rstrip() == "\n".join(shown).rstrip()
