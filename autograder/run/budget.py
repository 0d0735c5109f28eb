"""Time limits that a loaded machine cannot make shorter.

What a limit counts is the larger of two: the processor time of the submission, and the time on the clock without the
time in which a process of this grading could have run and no processor was free. So a busy loop ends after its seconds
of processor time, a sleeping cell after its seconds on the clock, and a submission that waits for its neighbours loses
nothing. A far ceiling on the clock holds whatever the counters say. A run that meets it has starved, which tells
nothing about the submission: it is repeated and not scored (InterruptedRunError).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from autograder.sandbox.limits import Usage
from autograder.sandbox.watch import waited_seconds

FAR = 30  # times the limit, on the clock


class InterruptedRunError(RuntimeError):
    """The machine starved a run or killed a part of it, so what came of it is no result of the submission."""


class Deadline:
    """The end of `seconds`, which begin now; `usage` tells what the submission has used so far."""

    def __init__(self, seconds: float, usage: Callable[[], Usage] | None = None) -> None:
        self._seconds, self._usage = seconds, usage
        self._begin = time.monotonic()
        self._used, self._own = self._now()

    def spent(self) -> float:
        """Seconds that count."""
        return max(self._counted())

    def starved(self) -> bool:
        """Whether the far ceiling alone has ended the time."""
        own, far = self._counted()
        return own < self._seconds <= far

    def left(self) -> float:
        """Seconds that are left at least; 0 or less once it has passed."""
        return self._seconds - self.spent()

    def _counted(self) -> tuple[float, float]:
        """Seconds of the submission itself, and what the far ceiling makes of the clock."""
        wall = time.monotonic() - self._begin
        if self._usage is None:
            return wall, 0.0
        used, own = self._now()
        waited = max(used.waited_seconds - self._used.waited_seconds, 0.0) + own - self._own
        cpu = used.cpu_seconds - self._used.cpu_seconds  # below 0 after a restart
        return max(wall - waited, cpu), wall / FAR

    def _now(self) -> tuple[Usage, float]:
        own = 0.0
        with contextlib.suppress(OSError, ValueError, IndexError):
            own = waited_seconds()
        return self._usage() if self._usage else Usage(), own
