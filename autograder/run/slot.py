"""Room on a machine for runs beside each other, or for one run alone.

A run that was starved or killed from outside is repeated while nothing else of the course is being run. Two file locks
in the course's folder do this: every run shares the second one, and a run that wants to be alone holds it for itself.
All pass the first one on their way, so those that come later wait behind the one that waits to be alone.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_FOLDER = Path(".autograder") / "slots"  # in the course's folder


@contextmanager
def slot(root: Path, alone: bool = False) -> Iterator[None]:
    """Hold room for a run of the course in `root`; with `alone`, no other run of this machine goes on meanwhile."""
    folder = root / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "room").open("w") as room, contextlib.ExitStack() as held:
        with (folder / "gate").open("w") as gate, _locked(gate, fcntl.LOCK_EX):
            held.enter_context(_locked(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield


@contextmanager
def _locked(file: IO[str], kind: int) -> Iterator[None]:
    """Hold a file's lock. It is given up by name: closing the file would not do that while a fork has it open."""
    fcntl.flock(file, kind)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
