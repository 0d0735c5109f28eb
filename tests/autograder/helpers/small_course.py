"""A small assignment as it is handed out, and submissions of it, for the tests of collecting and of the sandbox."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]

STUB = "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
ANSWER = "def double(x):\n    return 2 * x"
ESSAY_STUB, ESSAY = "YOUR ANSWER HERE", "Because it is twice as much."


def code(source: str, name: str | None = None, **kind: Any) -> dict[str, Any]:
    return {**text(source, name, **kind), "cell_type": "code", "execution_count": None, "outputs": []}


def text(source: str, name: str | None = None, **kind: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if name is not None:
        nbgrader = {"grade": False, "locked": True, "solution": False, "task": False, "schema_version": 3, **kind}
        metadata = {"nbgrader": {**nbgrader, "grade_id": name}}
    cell = {"cell_type": "markdown", "metadata": metadata, "source": source}
    return {**cell, "id": name or f"plain-{abs(hash(source)) % 10**8}"}


def released() -> Notebook:
    """Read-only imports, a lesson's text, an answer, two tests, an essay graded by hand."""
    cells = [
        code("import math", "imports"),
        text("# Doubling"),
        code(STUB, "double", solution=True, locked=False),
        code("assert double(2) == 4", "test-two", grade=True, points=2),
        code("assert double(-1) == -2", "test-minus-one", grade=True, points=3),
        text(ESSAY_STUB, "essay", grade=True, solution=True, locked=False, points=4),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def answered() -> Notebook:
    """A right submission."""
    notebook = copy.deepcopy(released())
    cell(notebook, "double")["source"] = ANSWER
    cell(notebook, "essay")["source"] = ESSAY
    return notebook


def cell(notebook: Notebook, name: str) -> dict[str, Any]:
    return next(cell for cell in notebook["cells"] if grade_id(cell) == name)


def grade_id(cell: dict[str, Any]) -> str | None:
    found: str | None = cell["metadata"].get("nbgrader", {}).get("grade_id")
    return found


def write(path: Path, notebook: Notebook) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path
