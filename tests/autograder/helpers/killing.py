"""Kills a process at each of its changes of a file, one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy.event
from sqlalchemy.engine import Engine

# What Python tells before it changes or opens a file; see "Audit events table" in its documentation.
_CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.link", "os.truncate", "os.utime")


def in_a_fork(work: Callable[[], Any]) -> int:
    """Exit status of a fork that does this."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(
    number: int, root: Path, emptied: bool, work: Callable[[], Any], ignored: tuple[str, ...] = (".autograder",)
) -> bool:
    """Do `work` in a process that dies before its call number `number` that changes a file below `root`.

    A commit of a database counts as such a call, and what lies in the `ignored` folders of `root` does not. With
    `emptied`, a file that the call opens to write is created or emptied first. False if there are fewer calls.
    """
    left = number
    here, passed = str(root), tuple(str(root / name) for name in ignored)

    def count() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    def die(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in _CHANGES or not isinstance(arguments[0], (str, Path)):
            return
        in_an_open_folder = event in ("os.remove", "os.rmdir") and arguments[1] != -1  # shutil.rmtree
        if not (in_an_open_folder or str(arguments[0]).startswith(here)):
            return
        writes = event != "open" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if writes and not str(arguments[0]).startswith(passed) and count():
            if emptied and event == "open":
                left = 10**9
                os.close(os.open(arguments[0], arguments[2] & ~os.O_EXCL, 0o666))
            os._exit(9)

    def commits(*_: Any) -> None:
        if count():
            os._exit(9)

    def act() -> None:
        sys.addaudithook(die)
        sqlalchemy.event.listen(Engine, "commit", commits)
        work()

    code = in_a_fork(act)
    assert code in (0, 9), "the work itself failed"
    return code == 9
