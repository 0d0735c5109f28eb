"""Whether a grading process grows: many submissions to an assignment of one function and one test, graded in one run.

python -m autograder.commands.bench --memory 1000
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autograder.course import CONFIG
from autograder.course.course import Course, demand, open_nbgrader

_NAME = "tiny"
_ANSWERS = ["def double(x):\n    return 2 * x", "def double(x):\n    return x", "def double(x:", "1 / 0"]
_STUB = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
_TEST = "assert double(2) == 4\n### BEGIN HIDDEN TESTS\nassert double(21) == 42\n### END HIDDEN TESTS"


def measure(course: Path, count: int, jobs: int) -> dict[str, float]:
    """Grade `count` submissions; resident bytes of a grading process in the first and the last tenth, and seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as folder:
        root = Path(folder)
        (root / CONFIG).write_bytes((course / CONFIG).read_bytes())
        _write(root / "source" / _NAME, _STUB, _TEST)
        demand(open_nbgrader(Course(root), root).generate_assignment(_NAME), "generating the assignment")
        released = json.loads((root / "release" / _NAME / f"{_NAME}.ipynb").read_text(encoding="utf-8"))
        for number in range(count):
            released["cells"][0]["source"] = _ANSWERS[number % len(_ANSWERS)]
            desk = root / "submitted" / f"s{number:05}" / _NAME
            desk.mkdir(parents=True)
            (desk / f"{_NAME}.ipynb").write_text(json.dumps(released), encoding="utf-8")
        begin = time.monotonic()
        words = ["grade", _NAME, "--course", str(root), "--jobs", str(jobs)]
        done = subprocess.run([sys.executable, "-m", "autograder", *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"grading failed:\n{done.stderr[-2000:]}")
        seconds = time.monotonic() - begin
        lines = (root / f"{_NAME}-telemetry.jsonl").read_text(encoding="utf-8").splitlines()
        memory = [line["memory"] for line in map(json.loads, lines) if "memory" in line]
    tenth = max(count // 10, 1)
    early, late = (statistics.median(some) for some in (memory[:tenth], memory[-tenth:]))
    return {"submissions": count, "seconds": seconds, "memory_early": early, "memory_late": late}


def table(found: dict[str, float]) -> str:
    """The numbers in words."""
    early, late = found["memory_early"] / 1e6, found["memory_late"] / 1e6
    return (
        f"{found['submissions']:.0f} submissions to an assignment of one function, graded in {found['seconds']:.0f} s\n"
        f"memory of a grading process: {early:.1f} MB in the first tenth, {late:.1f} MB in the last "
        f"({late - early:+.1f} MB)"
    )


def _write(folder: Path, answer: str, test: str) -> None:
    def cell(name: str, text: str, **more: Any) -> dict[str, Any]:
        about = {"grade_id": name, "grade": False, "solution": False, "locked": False, "task": False}
        metadata = {"nbgrader": {**about, "schema_version": 3, **more}}
        return {"cell_type": "code", "id": name, "metadata": metadata, "source": text, "outputs": [],
                "execution_count": None}  # fmt: skip

    cells = [cell("double", answer, solution=True), cell("test", test, grade=True, locked=True, points=2)]
    folder.mkdir(parents=True)
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / f"{_NAME}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
