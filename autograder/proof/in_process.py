"""Runs an assignment's test cells, hidden parts included, in this process with other answers in the learner's place.

That is quick, and meant for code of our own; a submission goes the way of `python -m autograder prove`.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from autograder import checks
from autograder.course.source import Source


def failures(cells: Source, answers: dict[str, str], seconds: float = 0.0) -> Iterator[tuple[str, str]]:
    """(test cell, message) for each test that fails with these answers in place of the reference's, by cell name.

    `seconds` of processor time is what one cell may take; 0 sets no limit. One that takes more fails with TimeoutError.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells.cells:
        checks.think_of("")
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), _limit(seconds):
                warnings.simplefilter("ignore")
                exec(compile(answers.get(cell.name, cell.source), cell.name, "exec"), names)
        except BaseException as error:  # as the grader does: whatever a learner's code raises fails the test
            if cell.kind == "test":
                yield cell.name, f"{type(error).__name__}: {error}".removeprefix("CheckError: ")


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block once it has taken `seconds`. Signals reach the main thread only."""
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(*_: Any) -> None:
        raise TimeoutError(f"it did not end within {seconds:g} seconds")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
