"""How each question did: mean, median, how well it tells learners apart, and the mistake that was made most often.

Discrimination is the corrected item-total correlation: Pearson's r between the points of the question and those of all
the others (Crocker and Algina, Introduction to Classical and Modern Test Theory, chapter 14). Near 0, or below it, the
question asks something else than the rest, or is unclear. Mistakes have the names that the bank gives them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.batch.scores import Result
from autograder.feedback import hints


@dataclass(frozen=True)
class Question:
    """One graded cell over the class. `discrimination` is None where it is not defined: no two learners differ."""

    name: str
    points: float
    count: int
    mean: float
    median: float
    discrimination: float | None
    mistake: str = ""
    times: int = 0


def questions(results: Sequence[Result], known: Sequence[hints.Hint]) -> list[Question]:
    """One entry for each question, in the order of the notebook; answers that wait for a grader are left out.

    `known` are the hints of the assignment, in whose words mistakes are named.
    """
    names = list(dict.fromkeys(cell.name for result in results for cell in result.cells))
    found = []
    for name in names:
        scores, rests, mistakes, points = [], [], Counter[str](), 0.0
        for result in results:
            cells = {cell.name: cell for cell in result.cells}
            if (cell := cells.get(name)) is None or cell.score is None:
                continue
            scores.append(cell.score)
            rests.append(sum(other.score or 0.0 for other in result.cells if other.name != name))
            points = cell.points
            if cell.score < cell.points and (hint := hints.first(list(known), name, cell.reason)) is not None:
                mistakes[hint.kind] += 1
        if not scores:
            continue
        mistake, times = mistakes.most_common(1)[0] if mistakes else ("", 0)
        mean, median = statistics.fmean(scores), statistics.median(scores)
        found.append(Question(name, points, len(scores), mean, median, _correlation(scores, rests), mistake, times))
    return found


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    try:
        return statistics.correlation(xs, ys)
    except statistics.StatisticsError:  # fewer than two, or all alike
        return None


def table(found: Sequence[Question]) -> str:
    """The numbers in words."""
    width = max([len("question"), *(len(one.name) for one in found)])
    lines = [f"{'question':<{width}}  points  graded   mean  median  discrimination  most frequent mistake"]
    for one in found:
        apart = "-" if one.discrimination is None else f"{one.discrimination:.2f}"
        mistake = f"{one.times} x {one.mistake}" if one.mistake else "-"
        numbers = f"{one.points:6g}  {one.count:6}  {one.mean:5.2f}  {one.median:6.4g}  {apart:>14}"
        lines.append(f"{one.name:<{width}}  {numbers}  {mistake}")
    return "\n".join(lines)


def hints_of(root: Path, assignment: str) -> list[hints.Hint]:
    """The hints that the course has for an assignment."""
    return hints.read(root / "hints" / f"{assignment}.toml")
