"""The same pieces of work on a Dask cluster, for a class that one machine is too small for.

Each worker needs this package, bubblewrap and the course directory under the same path (a shared file system), and a
gradebook that all can write to: sqlite on one machine, a database server beyond. Start workers with one thread each:

    dask scheduler
    dask worker tcp://HOST:8786 --nworkers 8 --nthreads 1
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autograder.batch import pool
from autograder.course.course import CourseError
from autograder.sandbox import warm_kernels as warm

_ONE = threading.Lock()  # nbgrader changes the working directory: one piece at a time in a process
_NURSERY = contextlib.ExitStack()
_WARM: set[Path] = set()


def run(work: Callable[[Any], Any], tasks: Sequence[Any], address: str) -> Iterator[tuple[Any, Any]]:
    """As `pool.run`, on the cluster whose scheduler listens at `address`. Raises CourseError if there is none."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise CourseError(
            "--scheduler needs the package `distributed`: pip install 'llm-serving-course[cluster]'"
        ) from error
    try:
        client = Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise CourseError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise CourseError(f"the Dask scheduler at {address} has no worker")
        # A worker that dies takes its piece to another one, twice at most; then that piece alone is given up.
        futures = {client.submit(_piece, work, task, pure=False, retries=1): task for task in tasks}
        try:
            for future in as_completed(futures):
                task = futures.pop(future)
                if future.status == "finished":
                    yield task, future.result()
                else:
                    yield task, pool.Lost(f"the cluster could not grade it: {_words(future)}")
        finally:
            client.cancel(list(futures))


def _piece(work: Callable[[Any], Any], task: Any) -> Any:
    """In a worker of the cluster."""
    with _ONE:
        if task.root not in _WARM:
            _WARM.add(task.root)
            if not _WARM - {task.root}:  # one nursery a process: it hides one course's folder
                _NURSERY.enter_context(warm.nursery(hide=(task.root,)))
                atexit.register(_NURSERY.close)
        return work(task)


def _words(future: Any) -> str:
    try:
        error = future.exception(timeout=5)
    except Exception as raised:
        error = raised
    return f"{type(error).__name__}: {error}"
