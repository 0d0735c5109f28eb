"""How a probe of the sandbox is run: a small program that a dishonest learner might write, and what came of it."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

from autograder.sandbox.contents import Job
from autograder.sandbox.launch import start
from autograder.sandbox.limits import Limits

LIMITS = Limits(memory=2**30, processes=64, file_size=50 * 2**20, scratch=100 * 2**20, cpu_seconds=30, wall_seconds=60)


@dataclass(frozen=True)
class Finding:
    """One limit: what was tried, whether it held, what happened, and what to do if it did not."""

    name: str
    held: bool
    what: str
    mend: str = ""


@dataclass(frozen=True)
class Ran:
    """A probe's program, over."""

    said: str
    code: int
    reason: str
    seconds: float
    memory_peak: int

    @property
    def line(self) -> str:
        return (self.said.strip().splitlines() or [""])[-1]


def run(code: str, limits: Limits = LIMITS, **words: str) -> Ran:
    """Run a probe's program; `words` replace NAME in its text by a quoted string."""
    for name, word in words.items():
        code = code.replace(name, repr(word))
    begin = time.monotonic()
    box = start(Job([sys.executable, "-c", TRY + code], limits), stdout=subprocess.PIPE)
    try:
        assert box.process.stdout is not None
        said = box.process.stdout.read(100_000)
        status = box.process.wait()
        reason = box.reason()
        seconds = time.monotonic() - begin
    finally:
        usage = box.stop()
    return Ran(said.decode(errors="replace"), status, reason, seconds, usage.memory_peak)


TRY = """
import os, time
def tries(*attempts):
    done = []
    for name, attempt in attempts:
        try:
            done.append(f"{name} ({attempt()!s:.60})")
        except Exception:
            pass
    print("; ".join(done) or "nothing")
"""
