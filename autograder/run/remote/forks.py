"""Processes for tests, forked from a server that has imported NumPy and whatever else the tests need.

Each notebook's tests get a process of their own, which keeps one submission's grading from another's. Importing would
be the cost of that, so a server imports once and forks; nothing of a learner's is ever in the server. Each grading
process has a server of its own from its first notebook on; a batch has one for all its processes (`serving`).
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VARIABLE = "AUTOGRADER_TESTS"  # how child processes of a batch find the server
WORTH_IT = frozenset({"numpy", "torch", "scipy", "pandas", "matplotlib", "sympy", "sklearn"})  # known to be slow
_SOON = 120  # seconds in which the server has started and imported, also on a busy machine
_OWN: dict[int, str] = {}  # the address by process, since a fork must not use its parent's


class Fork:
    """A process for tests. `end` it."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection, self._handle = connection, os.pidfd_open(pid)

    def end(self) -> int | None:
        """End it; returns its exit status, None if that cannot be told."""
        code = self._status(0.5)  # it ends by itself when its socket is closed
        if code is None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            code = self._status(5.0)
        os.close(self._handle)
        self._connection.close()
        return code

    def _status(self, seconds: float) -> int | None:
        self._connection.settimeout(seconds)
        try:
            said = self._connection.recv(16)
        except OSError:
            return None
        return int(said) if said else None


def fork(request: dict[str, Any], handle: int) -> Fork:
    """A process that runs the cells which come over the socket `handle`. See `_become` for the request.

    Raises RuntimeError if there is no server.
    """
    place = os.environ.get(VARIABLE) or _own()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_SOON)
        connection.connect(place)
        socket.send_fds(connection, [json.dumps(request).encode()], [handle])
        return Fork(connection, int(connection.recv(16)))
    except (OSError, ValueError) as error:
        connection.close()
        raise RuntimeError(f"no process for the tests could be started: {error}") from error


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Keep a server for the time of the `with` block, for this process and its children; yields its address."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        place = f"{folder}/s"
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}
        process = subprocess.Popen(
            [sys.executable, "-m", "autograder.run.remote.forks", place],
            stdin=subprocess.PIPE,  # closed when this process ends, however it ends
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        try:
            deadline = time.monotonic() + _SOON
            while not os.path.exists(place):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the process that forks processes for tests did not start")
                time.sleep(0.01)
            os.environ[VARIABLE] = place
            yield place
        finally:
            os.environ.pop(VARIABLE, None)
            if before is not None:
                os.environ[VARIABLE] = before
            process.kill()
            process.communicate()


def _own() -> str:
    """The address of this process's own server, started at the first use."""
    if os.getpid() not in _OWN:
        keep, mine = contextlib.ExitStack(), os.getpid()
        _OWN[mine] = keep.enter_context(serving())
        del os.environ[VARIABLE]
        atexit.register(lambda: keep.close() if os.getpid() == mine else None)
    return _OWN[os.getpid()]


def main(place: str) -> None:
    """The server: one connection for each process, on which it tells the process's number and, later, how it ended."""
    from autograder.run import grader_process  # noqa: F401 - what each fork needs

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place + "-")
        server.listen(64)
        os.rename(place + "-", place)  # who finds the file can connect
        while True:
            ready, _, _ = select.select([server.fileno(), reading, 0], [], [])
            if 0 in ready:
                return  # the process that started this one has gone
            if reading in ready:
                os.read(reading, 4096)
                _bury(running)
            if server.fileno() in ready:
                connection, _ = server.accept()
                line, handles, _, _ = socket.recv_fds(connection, 65536, 1)
                if not handles:  # who asked has gone
                    connection.close()
                    continue
                request = json.loads(line)
                for name in WORTH_IT.intersection(request["modules"]):
                    with contextlib.suppress(ImportError):
                        importlib.import_module(name)
                if (pid := os.fork()) == 0:
                    for other in (server, connection, *running.values()):
                        other.close()
                    _become(request, handles[0])
                os.close(handles[0])
                running[pid] = connection
                with contextlib.suppress(OSError):  # as above; the process ends with its socket
                    connection.sendall(str(pid).encode())


def _bury(running: dict[int, socket.socket]) -> None:
    """Tell of each process that has ended."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(found[0]) as connection, contextlib.suppress(OSError):
                connection.sendall(str(os.waitstatus_to_exitcode(found[1])).encode())


def _become(request: dict[str, Any], handle: int) -> None:
    """In the fork: become the process for one notebook's tests. Does not return.

    The request: `folder` to work in, `seed` of the random inputs, `memory` in bytes, `modules` that the tests import.
    """
    import random

    from autograder.run.grader_process import serve

    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(request["folder"])
        os.environ["AUTOGRADER_SEED"] = str(request["seed"])
        random.seed()
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # every fork has the same state
        serve(socket.socket(fileno=handle), request["memory"])
        code = 0
    except SystemExit:
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]).as_posix())
