"""Time limits that a loaded machine cannot make shorter.

What a limit counts is the larger of two: the processor time of the submission, and the time on the clock without the
time in which a process of this grading could have run and no processor was free. So a busy loop ends after its seconds
of processor time, a sleeping cell after its seconds on the clock, and a submission that waits for its neighbours loses
nothing. A far ceiling on the clock holds whatever the counters say.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from autograder.sandbox.limits import Usage
from autograder.sandbox.watch import waited_seconds

FAR = 30  # times the limit, on the clock


class Deadline:
    """The end of `seconds`, which begin now; `usage` tells what the submission has used so far."""

    def __init__(self, seconds: float, usage: Callable[[], Usage] | None = None) -> None:
        self._seconds, self._usage = seconds, usage
        self._begin = time.monotonic()
        self._used, self._own = self._now()

    def spent(self) -> float:
        """Seconds that count."""
        wall = time.monotonic() - self._begin
        if self._usage is None:
            return wall
        used, own = self._now()
        waited = max(used.waited_seconds - self._used.waited_seconds, 0.0) + own - self._own
        cpu = used.cpu_seconds - self._used.cpu_seconds  # below 0 after a restart
        return max(wall - waited, cpu, wall / FAR)

    def left(self) -> float:
        """Seconds that are left at least; 0 or less once it has passed."""
        return self._seconds - self.spent()

    def _now(self) -> tuple[Usage, float]:
        own = 0.0
        with contextlib.suppress(OSError, ValueError, IndexError):
            own = waited_seconds()
        return self._usage() if self._usage else Usage(), own
