"""Checks that hold for every problem set: what a notebook promises, and what its released bundle may hold."""

from __future__ import annotations

import json
import re
from typing import Any

from in_process import COURSE

from autograder.proof.release import check_leaks, check_markers


def cells(name: str, kind: str = "source", student: str = "") -> list[dict[str, Any]]:
    """The cells of an assignment's notebook in `source`, `release` or `submissions`."""
    path = COURSE / kind / name / student / f"{name}.ipynb"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def text(name: str) -> str:
    """All that the released notebook says."""
    return "\n".join("".join(cell["source"]) for cell in cells(name, "release"))


def answers(name: str, student: str) -> dict[str, str]:
    """A sample submission's answer cells, by name."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
        for cell in cells(name, "submissions", student)
        if cell["metadata"].get("nbgrader", {}).get("solution") and cell["cell_type"] == "code"
    }


def check_notebook(name: str, points: float, bonus: float = 0) -> None:
    """Ids are unique, nothing was run, the markers match, and the points promised are those of the cells.

    `points` leaves out the `bonus`, which is the last part's.
    """
    source = cells(name)
    ids = [cell["id"] for cell in source]
    graded = [cell["metadata"]["nbgrader"] for cell in source if "nbgrader" in cell["metadata"]]
    assert len(set(ids)) == len(ids)
    assert len({cell["grade_id"] for cell in graded}) == len(graded)
    assert sum(cell.get("points", 0) for cell in graded) == points + bonus
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in source)
    check_markers(COURSE / "source" / name / f"{name}.ipynb")

    title = "".join(source[0]["source"])
    rows = [line.split("|") for line in title.splitlines() if re.match(r"\| \d", line)]
    promised = {f"part-{row[1].strip()}": int(row[3]) for row in rows}
    earned = dict.fromkeys(promised, 0)
    part = ""
    for cell in source:
        part = cell["id"] if cell["id"] in promised else part
        if part:
            earned[part] += cell["metadata"].get("nbgrader", {}).get("points", 0)
    assert earned == promised
    assert not bonus or list(earned.values())[-1] == bonus


def check_hints(name: str) -> None:
    """Each part that asks for code has three hints behind folds, which open and close as they should."""
    part, with_hints, with_code = "", set(), set()
    for cell in cells(name, "release"):
        said = "".join(cell["source"])
        part = cell["id"] if re.fullmatch(r"part-\d+", cell["id"]) else part
        if "<details>" in said:
            grades = ["1: a nudge", "2: the idea", "3: nearly the answer"]
            assert re.findall(r"<summary>Hint ([^<]*)</summary>\n\n", said) == grades, cell["id"]
            assert said.count("<details>") == said.count("</details>") == 3
            with_hints.add(part)
        if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution"):
            with_code.add(part)
    assert with_code <= with_hints
    assert "With a GPU" in text(name)


def check_bundle(name: str) -> None:
    """The released bundle holds no solution and no hidden test, and is that of the source as it is now."""
    check_leaks(COURSE / "source" / name, COURSE / "release" / name)
    said = text(name)
    for word in ("HIDDEN", "SOLUTION", "reference_impl", "Rubric"):
        assert word not in said, word
    for source, released in zip(cells(name), cells(name, "release"), strict=True):
        begin = "".join(source["source"]).split("### BEGIN")[0].rstrip()
        assert "".join(released["source"]).startswith(begin), (
            f"{source['id']}: run `python -m autograder release {name}`"
        )
