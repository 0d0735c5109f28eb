"""Pieces of work for the tests of the pool of processes and of the cluster."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


def work(piece: int) -> int:
    """1 is killed, 2 never ends, 3 exits, 4 raises nothing but is slow; others give their square."""
    if piece == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if piece == 2:
        time.sleep(1000)
    if piece == 3:
        os._exit(7)
    return piece * piece


@dataclass(frozen=True)
class Piece:
    """A piece of work in a course's folder."""

    root: Path
    number: int


def done_in(piece: Piece) -> int:
    """Does nothing but say in which process it was done."""
    time.sleep(0.2)
    return os.getpid()
