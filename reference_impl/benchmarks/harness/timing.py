"""Interleaved medians: how to compare speeds on a machine that others use too.

To time two programs one after the other compares two moments of the machine as much as two programs. So all contestants
take turns within a round, and each round begins with another of them. A contestant's figure is its median, and a ratio
is the median of the ratios within the rounds. The clock is passed in.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reference_impl.common.clock import Clock

Run = Callable[[], float]  # does its work once and returns the figure to compare, usually seconds


@dataclass
class Samples:
    """Figures by contestant, one a round. `failed` names those that dropped out, and says why."""

    values: dict[str, list[float]]
    failed: dict[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def median(self, name: str) -> float:
        return statistics.median(self.values[name])

    def ratio(self, name: str, to: str) -> float:
        """Median over the rounds of `name`'s figure divided by that of `to` in the same round."""
        return statistics.median(a / b for a, b in zip(self.values[name], self.values[to], strict=False))

    def spread(self, name: str) -> float:
        """Largest minus smallest, as a share of the median: how quiet the machine was."""
        return (max(self.values[name]) - min(self.values[name])) / self.median(name)


def timed(work: Callable[[], object], clock: Clock) -> Run:
    """A run that returns the seconds that `work` takes."""

    def run() -> float:
        start = clock()
        work()
        return clock() - start

    return run


def interleave(
    runs: Mapping[str, Run], rounds: int, clock: Clock, budget: float = float("inf"), warm_up: bool = True
) -> Samples:
    """Runs every contestant once a round; a warm-up round before that does not count.

    No new round starts once `budget` seconds have passed, but at least one counts. A contestant that raises an
    Exception is left out from then on and named in `failed`. ValueError for no round or no contestant.
    """
    if rounds < 1 or not runs:
        raise ValueError(f"nothing to compare: {len(runs)} contestants, {rounds} rounds")
    samples = Samples({name: [] for name in runs})
    deadline = clock() + budget
    for number in range(-1 if warm_up else 0, rounds):
        if number > 0 and clock() >= deadline:
            break
        names = [name for name in runs if name in samples]
        shift = max(number, 0) % max(len(names), 1)
        for name in names[shift:] + names[:shift]:
            try:
                figure = runs[name]()
            except Exception as error:  # a peer's failure must not lose the figures of the others
                samples.failed[name] = f"{type(error).__name__}: {error}"
                del samples.values[name]
                continue
            if number >= 0:
                samples.values[name].append(figure)
    return samples
