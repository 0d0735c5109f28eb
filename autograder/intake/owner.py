"""One owner for each submission: a lock over everything that takes it in, grades it or writes its feedback.

A batch, `nbgrader autograde`, `nbgrader collect` and formgrader may all work on one course at the same time. Each of
them holds a submission's lock from the moment it looks at the submission until the results are written, so none sees
another's half-done work. The lock is an advisory lock on a file (flock): it ends with its process, however that ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

with suppress(ImportError):  # Windows lacks it, and takes no submissions in; `check` works there
    import fcntl

LOCKS = Path(".autograder") / "locks"  # in the course's folder
_held: dict[tuple[int, Path], tuple[int, int]] = {}  # (thread, file) -> its open file, and how often it is held


@contextmanager
def owned(root: Path, assignment: str, student: str) -> Iterator[None]:
    """Hold one submission of the course in `root`; waits until nobody else does. A thread may hold it repeatedly."""
    path = root.resolve() / LOCKS / assignment / student
    key = threading.get_ident(), path
    handle, count = _held.get(key) or (_lock(path), 0)
    _held[key] = handle, count + 1
    try:
        yield
    finally:
        if count:
            _held[key] = handle, count
        elif _held.pop(key, None):  # a fork has given it up
            os.close(handle)


def _lock(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _forget() -> None:
    """In a fork: the lock is its parent's, and would last until the fork ends too."""
    for handle, _ in _held.values():
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
