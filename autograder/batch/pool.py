"""Does many independent pieces of work in processes that stay, none of which can take the others with it.

Importing nbgrader costs seconds, so it is done once, in a process that the others are forked from (this
one, or a helper where this one has threads); each worker then takes one piece after another. A worker that dies or
takes too long costs its piece a second try, alone and after all others, and then a reason; it never costs the batch.
Workers end with the process that started them, even if that one is killed.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

# Imported before the fork, in this order: course.py spares nbformat an import of seconds.
PRELOAD = [
    "autograder.course.course",
    "autograder.run.execute",
    "autograder.feedback.pages",
    "autograder.feedback.sanitize",
    "autograder.intake.handin",
    "autograder.batch.scores",
    "autograder.batch.batch",
]
PRELOAD += ["nbgrader.apps", "nbgrader.plugins", "nbconvert.preprocessors", "jupyter_client.manager", "zmq"]
_TRIES = 2
_READY = 600  # seconds in which a worker has started, also on a busy machine
_STARTING = object()
_MOST_MEMORY = 2**30  # bytes of a worker between two pieces; a larger one is replaced


@dataclass
class Lost:
    """A piece of work that came to nothing, and why."""

    reason: str


@dataclass
class _Worker:
    process: Any
    connection: Connection
    life: Connection  # closed when this process ends, however it ends
    piece: Any = None
    attempt: int = 0
    deadline: float = 0.0

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.life.close()


def run(
    work: Callable[[Any], Any], pieces: Iterable[Any], jobs: int, seconds: float, environment: Mapping[str, str]
) -> Iterator[tuple[Any, Any]]:
    """Yield (piece, work(piece)) in the order in which they are done, or (piece, Lost) for what could not be done.

    `work` is a function of a module. `seconds` is the most that one piece may take; `environment` is set in workers.
    When the iteration is left, by an exception or an interrupt too, every worker is ended.
    """
    waiting = deque((piece, 1) for piece in pieces)
    again: deque[tuple[Any, int]] = deque()  # second tries, each alone when everything else is done
    context: Any
    if threading.active_count() == 1:
        context = multiprocessing.get_context("fork")
        for name in PRELOAD:
            importlib.import_module(name)
    else:  # a lock that another thread holds would be held in the fork for ever
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOAD)
    workers: list[_Worker] = []
    try:
        while waiting or again or any(worker.piece is not None for worker in workers):
            if again and not waiting and all(worker.piece in (None, _STARTING) for worker in workers):
                waiting.append(again.popleft())
            while waiting and len(workers) < jobs:
                workers.append(_start(context, work, dict(environment), workers))
            for worker in workers:
                if worker.piece is None and waiting:
                    piece, worker.attempt = waiting.popleft()
                    with contextlib.suppress(OSError):  # found dead below
                        worker.connection.send(piece)
                    worker.piece, worker.deadline = piece, time.monotonic() + seconds
            busy = [worker for worker in workers if worker.piece is not None]
            ready = wait([worker.connection for worker in busy], timeout=1.0)
            for worker in busy:
                piece, ended = worker.piece, ""
                if worker.connection in ready:
                    try:
                        result, memory = worker.connection.recv()
                    except (EOFError, OSError):
                        worker.process.join(5)
                        ended = f"the process that graded it ended ({_how(worker.process.exitcode)})"
                elif time.monotonic() > worker.deadline:
                    ended = f"grading it took more than {seconds:.0f} seconds"
                else:
                    continue
                if not ended:
                    worker.piece = None
                if piece is _STARTING:
                    if ended:
                        raise RuntimeError(f"no process for the work could be started: {ended}")
                    continue
                if not ended:
                    yield piece, result
                if ended or memory > _MOST_MEMORY:
                    worker.end()
                    workers.remove(worker)
                if ended and worker.attempt < _TRIES:
                    again.append((piece, worker.attempt + 1))
                elif ended:
                    yield piece, Lost(ended)
    finally:
        for worker in workers:
            worker.end()


def memory() -> int:
    """Resident bytes of this process; 0 where that cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _start(context: Any, work: Callable[[Any], Any], environment: dict[str, str], others: Iterable[_Worker]) -> _Worker:
    ours, theirs = context.Pipe()
    listening, life = context.Pipe(duplex=False)
    inherited: list[Connection] = []
    if context.get_start_method() == "fork":  # a worker that holds its own `life` open would never see it close
        inherited = [ours, life, *(end for other in others for end in (other.connection, other.life))]
    process = context.Process(target=_serve, args=(work, theirs, listening, environment, inherited), daemon=True)
    process.start()
    theirs.close()
    listening.close()
    return _Worker(process, ours, life, _STARTING, deadline=time.monotonic() + _READY)


def _serve(
    work: Callable[[Any], Any],
    connection: Connection,
    life: Connection,
    environment: dict[str, str],
    inherited: list[Connection],
) -> None:
    """The life of a worker."""
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that hands out the work
    os.environ.update(environment)
    warnings.filterwarnings("ignore", module=r"nbgrader|sqlalchemy|traitlets|jupyter")
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        connection.send((None, 0))  # ready
        while True:
            result = work(connection.recv())
            connection.send((result, memory()))


def _end_with(life: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        life.recv()
    os._exit(1)


def _how(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "killed, as when memory runs out"
    return f"exit status {code}"
