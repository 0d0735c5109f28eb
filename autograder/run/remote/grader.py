"""The grading process's hold on the process that runs the tests: starts it, feeds it cells, ends it when it hangs."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.run.budget import InterruptedRunError
from autograder.run.learner import Answer, Learner, LineError
from autograder.run.remote import forks
from autograder.run.remote.link import Link, LinkError

OWN_TIME = 15.0  # seconds that a test may take beyond its time-out, to tell what came of it


class Grader:
    """A process that runs test cells; one for a notebook, started when the first cell needs it, again if it ended."""

    def __init__(self, folder: Path, seed: int, memory: int, modules: Sequence[str] = ()) -> None:
        self._folder, self._seed, self._memory, self._modules = folder, seed, memory, modules
        self._process: forks.Fork | None = None
        self._link: Link | None = None
        self._knows_line = False

    @property
    def running(self) -> bool:
        return self._process is not None

    def run(self, message: dict[str, Any], seconds: float, learner: Learner) -> tuple[dict[str, Any], Answer | None]:
        """Run a cell there. Returns what grader_process says of it, or an error; and what ended the learner's kernel or
        its time meanwhile. Raises InterruptedRunError if something killed the process."""
        if self._process is None:
            self._start()
        assert self._link is not None
        failure: Answer | None = None
        deadline, over = learner.deadline(seconds), False
        try:
            self._send(message, learner)
            while True:
                try:
                    answer = self._link.receive(deadline.left, learner.drain)
                except LinkError:
                    if over or deadline.left() > 0:
                        raise
                    over, deadline = True, learner.deadline(OWN_TIME)
                    words = f"the test's {seconds:.3g} seconds were over before it returned"
                    failure = failure or Answer("timeout", words=words)
                    learner.give_up()
                    continue
                if answer["type"] == "done":
                    return answer, failure
                failure = failure or learner.lost()  # "lost": the kernel has hung up
                self._link.send({"type": "words", "words": failure.words})
        except LinkError as error:
            late = deadline.left() <= 0
            code = self.stop()
            if not late and code == -signal.SIGKILL:
                raise InterruptedRunError("the process that runs the tests was killed") from error
            why = f"did not end within {seconds:.3g} seconds" if late else f"ended its process ({error}, status {code})"
            return {"type": "done", "error": {"ename": "TestEnded", "evalue": f"the test {why}"}}, failure

    def stop(self) -> int | None:
        """End the process; returns its exit status."""
        if self._process is None:
            return None
        if self._link is not None:
            self._link.close()
        code = self._process.end()
        self._process = self._link = None
        return code

    def _send(self, message: dict[str, Any], learner: Learner) -> None:
        """A cell, and the line to the kernel if it is a new one."""
        assert self._link is not None
        line, words, is_new = None, "", False
        try:
            line, is_new = learner.line()
        except LineError as error:
            words = error.answer.words
        is_new = line is not None and (is_new or not self._knows_line)
        self._link.send({**message, "type": "cell", "line": is_new, "words": words})
        if line is not None and is_new:
            self._link.send_handle(line.fileno())
            self._knows_line = True

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            request = {"folder": str(self._folder), "seed": self._seed, "memory": self._memory}
            self._process = forks.fork({**request, "modules": list(self._modules)}, theirs.fileno())
        self._link = Link(ours)
        self._knows_line = False
