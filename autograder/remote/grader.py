"""The grading process's hold on the process that runs the tests: starts it, feeds it cells, ends it when it hangs."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..learner import Answer, Learner
from .link import Link, LinkError

Ask = Callable[[str], Answer]


class Grader:
    """A process that runs test cells; one for a notebook, started when the first cell needs it, again if it ended."""

    def __init__(self, folder: Path, seed: int, memory: int) -> None:
        self._folder, self._seed, self._memory = folder, seed, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def run(self, message: dict[str, Any], seconds: float, ask: Ask, learner: Learner) -> dict[str, Any]:
        """Run a cell there, passing its questions to `ask`. Returns what grader_process says of it, or an error."""
        if self._process is None:
            self._start()
        assert self._link is not None
        deadline = time.monotonic() + seconds
        try:
            self._link.send(message)
            while (answer := self._link.receive(deadline, learner.drain))["type"] == "ask":
                got = ask(answer["text"])
                kind = "answer" if got.kind in ("ok", "call") else "failed"
                self._link.send({"type": kind, "text": got.text, "words": got.words, "printed": got.printed})
            return answer
        except LinkError as error:
            late = time.monotonic() >= deadline
            code = self.stop()
            why = f"did not end within {seconds:.3g} seconds" if late else f"ended its process ({error}, status {code})"
            return {"type": "done", "error": {"ename": "TestEnded", "evalue": f"the test {why}"}}

    def stop(self) -> int | None:
        """End the process; returns its exit status."""
        if self._process is None:
            return None
        if self._link is not None:
            self._link.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)
        self._process.kill()
        code = self._process.wait()
        self._process = self._link = None
        return code

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        environment = {
            **os.environ,
            "AUTOGRADER_SEED": str(self._seed),
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
        }
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "autograder.grader_process", str(theirs.fileno()), str(self._memory)],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._link = Link(ours)
