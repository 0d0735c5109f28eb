"""The same pieces of work on a Dask cluster, for a class that one machine is too small for.

Each worker needs this package, bubblewrap and the course directory under the same path (a shared file system), and a
gradebook that all can write to: sqlite on one machine, a database server beyond. Start workers with one thread each:

    dask scheduler
    dask worker tcp://HOST:8786 --nworkers 8 --nthreads 1

A worker gets no submission before it has proved that it can grade one. One that cannot is named with the reason and
left out; one that joins later is asked then.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.metadata
import os
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from autograder.batch import pool
from autograder.course.course import InfrastructureError
from autograder.sandbox import launch, warm_kernels

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 60.0  # seconds without a worker that can grade, after which what is left is given up
_PROOF = 120.0  # seconds in which a worker has to prove itself
_TRIES = 3  # workers that a piece may take down with it
_COMPARED = ("nbgrader", "numpy", "torch", "ipykernel")
_ONE = threading.Lock()  # nbgrader changes the working directory: one piece at a time in a process
_FORK_SERVER = contextlib.ExitStack()
_WARM: set[Path] = set()


class Piece(Protocol):
    """A piece of work in a course directory."""

    @property
    def root(self) -> Path: ...


def run(
    work: Callable[[Any], Any], tasks: Sequence[Piece], address: str, say: Callable[[str], None] = print
) -> Iterator[tuple[Any, Any]]:
    """As `pool.run`, on the cluster whose scheduler listens at `address`; `say` hears of workers that are refused.

    Raises InfrastructureError if there is no scheduler or no worker that can grade. If all workers are lost later, what
    is left comes back as `pool.Lost` after `PATIENCE` seconds.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise InfrastructureError(
            "--scheduler needs the package `distributed`: pip install 'llm-serving-course[cluster]'"
        ) from error
    try:
        client = Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise InfrastructureError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield from _Cluster(client, work, tasks[0].root, say).run(tasks)


class _Cluster:
    """The workers that have proved themselves, and the pieces that they are at."""

    def __init__(self, client: Client, work: Callable[[Any], Any], root: Path, say: Callable[[str], None]) -> None:
        self.client, self.work, self.root, self.say = client, work, root, say
        self.good: set[str] = set()
        self.refused: dict[str, str] = {}
        self.at_work: dict[Future, tuple[Piece, int, set[str]]] = {}  # piece, attempt, where it may run

    def run(self, tasks: Sequence[Piece]) -> Iterator[tuple[Any, Any]]:
        waiting = deque((task, 1) for task in tasks)
        self.look_at_workers()
        if not self.good:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.refused.items())
            raise InfrastructureError(f"no worker of the cluster can grade: {reasons or 'it has none'}")
        last_seen = time.monotonic()
        try:
            while waiting or self.at_work:
                self.look_at_workers()
                if self.good:
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > PATIENCE:
                    why = f"no worker of the cluster is left that can grade (waited {PATIENCE:.0f} seconds)"
                    self.say(f"{why}; {len(waiting) + len(self.at_work)} submissions are not graded")
                    left = [task for task, *_ in [*self.at_work.values(), *waiting]]
                    yield from ((task, pool.Lost(why)) for task in left)
                    return
                while waiting and len(self.at_work) < 2 * len(self.good):  # one to do and one to go on with
                    self.start(*waiting.popleft())
                yield from self.finished(waiting)
        finally:
            self.client.cancel(list(self.at_work))

    def finished(self, waiting: deque[tuple[Any, int]]) -> Iterator[tuple[Any, Any]]:
        """What is done now; what was lost with its worker goes back to `waiting`."""
        if not [future for future in self.at_work if future.done()]:
            time.sleep(0.1)
        for future in [future for future in self.at_work if future.done()]:
            task, attempt, _ = self.at_work.pop(future)
            if future.status == "finished":
                yield task, future.result()
            elif attempt < _TRIES:
                waiting.append((task, attempt + 1))
            else:
                yield task, pool.Lost(f"the cluster could not grade it in {_TRIES} attempts: {_words(future)}")

    def look_at_workers(self) -> None:
        """Let workers that are new prove themselves; forget those that are gone, and give their pieces to others."""
        present = set(self.client.scheduler_info(n_workers=-1)["workers"])
        self.good &= present
        if new := sorted(present - self.good - set(self.refused)):
            self.prove(new)
        for future, (task, attempt, allowed) in list(self.at_work.items()):
            # A lost worker's pieces go to the others that they may run on; where none of those is left, to new ones.
            if self.good and not allowed & present and not future.done():
                del self.at_work[future]
                self.client.cancel([future])
                self.start(task, attempt)

    def start(self, task: Piece, attempt: int) -> None:
        future = self.client.submit(_piece, self.work, task, pure=False, workers=sorted(self.good))
        self.at_work[future] = task, attempt, set(self.good)

    def prove(self, new: Sequence[str]) -> None:
        """Ask these workers to prove that they can grade."""
        token = secrets.token_hex(8)
        sign = self.root / ".autograder" / f"seen-{token}"
        sign.parent.mkdir(parents=True, exist_ok=True)
        sign.write_text(token, encoding="utf-8")
        try:
            proofs = {
                name: self.client.submit(cannot_grade, sign, token, versions(), pure=False, workers=[name])
                for name in new
            }
            for name, proof in proofs.items():
                try:
                    why = proof.result(timeout=_PROOF)
                except Exception as error:  # it died of it, or its copy of this package is another
                    why = f"it could not be asked: {type(error).__name__}: {error}"
                if why:
                    self.refused[name] = why
                    self.say(f"worker {name} is left out: {why}")
                else:
                    self.good.add(name)
        finally:
            sign.unlink(missing_ok=True)


def cannot_grade(sign: Path, token: str, wanted: dict[str, str]) -> str:
    """In a worker: why it cannot grade here; empty if it can.

    `sign` is a file in the course directory that holds `token`; `wanted` are the versions of who hands out the work.
    """
    found = versions()
    if other := [
        f"{name} {found.get(name)}, not {version}" for name, version in wanted.items() if found.get(name) != version
    ]:
        return f"it has other versions: {'; '.join(other)}"
    try:
        if sign.read_text(encoding="utf-8") != token:
            return f"its folder {sign.parents[1]} is not the course's"
        own = sign.with_name(f"{sign.name}-{os.getpid()}")
        own.write_text(token, encoding="utf-8")
        own.unlink()
    except OSError as error:
        return f"it cannot see or write the course's folder {sign.parents[1]}: {error.strerror}"
    try:
        launch.check()
    except launch.SandboxError as error:
        return f"no sandbox works there: {error}"
    return ""


def versions() -> dict[str, str]:
    """What has to be the same everywhere for a submission to score the same everywhere."""
    found = {"Python": platform.python_version(), "autograder": _own_version()}
    for name in _COMPARED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _own_version() -> str:
    """A hash of this package's own files: a copy of the repository may be at another commit."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _piece(work: Callable[[Any], Any], task: Piece) -> Any:
    """In a worker of the cluster."""
    with _ONE:
        if task.root not in _WARM:
            _WARM.add(task.root)
            if not _WARM - {task.root}:  # one fork_server a process: it hides one course's folder
                _FORK_SERVER.enter_context(warm_kernels.fork_server(hide=(task.root,)))
                atexit.register(_FORK_SERVER.close)
        return work(task)


def _words(future: Future) -> str:
    try:
        error = future.exception(timeout=5)
    except Exception as raised:
        error = raised
    return f"{type(error).__name__}: {error}"
