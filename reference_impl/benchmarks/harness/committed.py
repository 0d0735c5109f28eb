"""Measurements kept in the repository, so that a lesson can show a quiet machine or a GPU beside the learner's own.

If nothing was measured, the answer is None and the lesson says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference_impl.benchmarks.harness import report
from reference_impl.benchmarks.harness.result import Result, Row

RESULTS = Path(__file__).parents[1] / "results"


def newest(section: str, folder: Path = RESULTS) -> Result | None:
    """The newest result that has this section, on any machine, or None."""
    return max(_with(section, folder), key=lambda result: result.date, default=None)


def gpu_result(section: str, folder: Path = RESULTS) -> Result | None:
    """The newest result of a GPU that has this section, or None."""
    of_a_gpu = [result for result in _with(section, folder) if "multiprocessors" in result.hardware]
    return max(of_a_gpu, key=lambda result: result.date, default=None)


def gpu_table(section: str, folder: Path = RESULTS) -> str:
    """That section as a table with the GPU's name and the date, or a sentence that there is none yet."""
    result = gpu_result(section, folder)
    if result is None:
        return "No GPU's measurement lies in this repository yet: `make gpu-check` makes one on a machine with a GPU."
    return f"{result.hardware['name']}, {result.date}\n\n{report.section_text(result.section(section))}"


def quiet_result(section: str, folder: Path = RESULTS) -> Result:
    """The newest run on a quiet machine that has this section; KeyError if there is none."""
    quiet = [result for result in _with(section, folder) if result.settings.get("quiet")]
    if not quiet:
        raise KeyError(f"no run on a quiet machine has the section {section!r}")
    return max(quiet, key=lambda result: result.date)


def quiet_rows(section: str, folder: Path = RESULTS, **where: Any) -> list[Row]:
    """The rows of `quiet_result` whose columns have the values of `where`."""
    rows = quiet_result(section, folder).section(section).rows
    return [row for row in rows if all(row.get(column) == value for column, value in where.items())]


def _with(section: str, folder: Path) -> list[Result]:
    found = [Result.from_json(file.read_text(), str(file)) for file in sorted(folder.glob("*.json"))]
    return [result for result in found if section in {s.name for s in result.sections}]
