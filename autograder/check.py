"""The learner's own check: run a notebook from a fresh start and say in words which of its tests fail.

Nothing is sent anywhere and the file is left as it was. Only the tests that the notebook shows are run; grading runs
further inputs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .course import CourseError
from .scores import notebook_problem

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # see course.py


def check(path: Path, seconds: int = 60) -> int:
    """Run the notebook and print a line for each test; 0 if all pass, 1 if not. CourseError if it cannot be read."""
    if not path.is_file():
        raise CourseError(f"{path} is missing")
    if problem := notebook_problem(path):
        raise CourseError(problem)
    notebook = _run(path, seconds)

    points = passed = failed = 0.0
    for number, cell in enumerate(notebook.cells, start=1):
        kind = cell.metadata.get("nbgrader", {})
        name = kind.get("grade_id") or f"number {number}"
        if cell.cell_type != "code":
            continue
        error = next((out for out in cell.outputs if out.output_type == "error"), None)
        is_test = bool(kind.get("grade")) and not kind.get("solution")
        if is_test:
            points += kind.get("points", 0)
        if error is not None:
            failed += 1
            print(f"FAIL  {name}\n" + "\n".join(f"      {line}" for line in _words(error)))
        elif is_test:
            passed += kind.get("points", 0)
            print(f"ok    {name}")
    print(
        f"\nThe tests that passed are worth {passed:g} of {points:g} points." if points else "\nThere is no test here."
    )
    return 1 if failed else 0


def _run(path: Path, seconds: int) -> Any:
    """The notebook with the outputs of a run from a fresh start, in the notebook's own folder."""
    import nbformat
    from nbclient import NotebookClient

    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:
        raise CourseError(f"{path} is not a valid notebook: {str(error).splitlines()[0]}") from error
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        allow_errors=True,
        error_on_timeout={"ename": "Timeout", "evalue": f"stopped after {seconds} seconds", "traceback": []},
        resources={"metadata": {"path": str(path.resolve().parent)}},
        extra_arguments=["--log-level=40"],
    )
    try:
        client.execute()
    except Exception as error:  # the kernel died, or never started
        raise CourseError(f"{path} could not be run to its end: {str(error).splitlines()[0]}") from error
    return notebook


def _words(error: Any) -> list[str]:
    if error.ename == "NotImplementedError" and not error.evalue:
        return ["not written yet: a function above still holds `raise NotImplementedError()`"]
    if error.ename == "CheckError":
        return str(error.evalue).splitlines()
    return [f"{error.ename}: {error.evalue}".strip(": ")]
