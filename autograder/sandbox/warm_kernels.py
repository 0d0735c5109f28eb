"""Warm kernels: one process per batch that has everything imported, and is forked for each submission (`fork_server`).

    with warm_kernels.fork_server():
        ...  # every sandboxed kernel that this process and its children start is a fork

Making namespaces while forking needs root's rights. For other users, and wherever the server cannot start, kernels
start cold, in exactly the same sandbox.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from autograder.sandbox import bwrap, contents, entry, launch
from autograder.sandbox.fork_server import SOCKET, YARD, Request
from autograder.sandbox.interpreter import this_python
from autograder.sandbox.limits import Limits, make_group

VARIABLE = "AUTOGRADER_FORK_SERVER"  # how child processes of a batch find it
PRELOAD = ("numpy", "torch")
PLENTY = Limits(memory=6 * 2**30, processes=2000, scratch=64 * 2**20)  # for the fork_server itself
_SOON = 120  # seconds in which it has everything imported, also on a busy machine
_CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user, group


@contextlib.contextmanager
def fork_server(modules: Sequence[str] = PRELOAD, hide: tuple[Path, ...] = ()) -> Iterator[Path | None]:
    """Keep a fork_server for the time of the `with` block; yields its folder, or None where kernels will start cold.

    `modules` are imported beside those of the kernel. `hide` is for a course's kernels what their kernelspec says.
    Raises SandboxError if no sandbox works at all.
    """
    launch.check()
    hide = tuple(dict.fromkeys((*hide, Path(__file__).resolve().parents[1])))
    if os.geteuid() != 0:
        yield None
        return
    yard = contents.temporary("yard")
    group = make_group(PLENTY)
    process = None
    alive, hold = os.pipe()  # as in launch.start
    before = os.environ.get(VARIABLE)
    try:
        process = _open(yard, tuple(modules), hide, group.entries if group else [], alive)
        os.environ[VARIABLE] = str(yard)
        yield yard
    finally:
        os.close(alive)
        os.close(hold)
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before
        if process is not None:
            process.kill()
            process.wait()
        if group is not None:
            group.remove()
        shutil.rmtree(yard, ignore_errors=True)


def yard() -> Path | None:
    """The folder of the fork_server in use; None if there is none."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and os.path.exists(f"{named}/{SOCKET}") else None


def start(job: launch.Job, stdout: int = subprocess.DEVNULL) -> launch.Sandbox | None:
    """Start `python -m MODULE ...` or `python -c TEXT` as a fork of the fork_server; None if it has to start cold."""
    place = yard()
    if place is None or job.argv[0] != sys.executable or job.argv[1] not in ("-m", "-c"):
        return None
    if _about(job.hide) != (place / "about.json").read_text():
        return None
    folder = contents.temporary("job", place)
    group = make_group(job.limits)
    try:
        outside = contents.stranger()
        contents.furnish(folder, job, outside)
        process = _fork(place, folder, job, group.entries if group else [], stdout)
        return launch.Sandbox(process, folder, group, job.limits)
    except (OSError, LookupError, RuntimeError) as error:
        if group is not None:
            group.remove()
        shutil.rmtree(folder, ignore_errors=True)
        raise launch.SandboxError(f"the sandbox cannot be set up: {error}") from error


class Fork:
    """A forked kernel, with what is needed of subprocess.Popen: `pid` is process 1 of its namespaces."""

    stdin = None

    def __init__(self, pid: int, connection: socket.socket, stdout: IO[bytes] | None, stderr: IO[bytes]) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.returncode: int | None = None
        self._connection = connection
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._end(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status. Raises subprocess.TimeoutExpired."""
        code = self._end(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["a warm kernel"], timeout or 0)
        return code

    def kill(self) -> None:
        """Kill it, and so all of its namespace."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.kill()

    terminate = kill

    def _end(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self._connection.settimeout(timeout if timeout is None or timeout > 0 else 1e-4)
            try:
                said = self._connection.recv(4)
            except TimeoutError:
                return None
            except OSError:
                said = b""
            self.returncode = struct.unpack("i", said)[0] if len(said) == 4 else -signal.SIGKILL
            self._connection.close()
            os.close(self._handle)
            self._handle = -1
        return self.returncode


def _open(
    yard: Path, modules: tuple[str, ...], hide: tuple[Path, ...], entries: list[Path], alive: int
) -> subprocess.Popen[bytes]:
    """Start a fork_server and wait until it has imported everything."""
    folder = yard / "fork_server"
    job = launch.Job([], PLENTY, allow=(), hide=hide)
    contents.furnish(folder, job, None, alive)
    shutil.copyfile(Path(entry.__file__).with_name("fork_server.py"), folder / "files" / "fork_server.py")
    (yard / "about.json").write_text(_about(hide))
    python = this_python(hide)
    more = ["--bind", str(yard), YARD]
    program = [python.executable, f"{contents.FILES}/fork_server.py", *modules, *_KERNEL_MODULES]
    command = bwrap.arguments(job, folder, python, own_user=False, program=program, more=more)
    process = subprocess.Popen(
        [*bwrap.enter(entries), bwrap.find_bubblewrap(), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(yard / "errors").open("wb"),
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        start_new_session=True,
        pass_fds=[alive],
    )
    deadline = time.monotonic() + _SOON
    while not (yard / SOCKET).exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            words = (yard / "errors").read_text(errors="replace").strip()[-500:] or f"nothing in {_SOON} seconds"
            raise launch.SandboxError(f"the process for warm kernels did not start: {words}")
        time.sleep(0.02)
    return process


# What a kernel imports, also when it starts and at its first cell.
_KERNEL_MODULES = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.eventloops", "ipykernel.debugger",
    "IPython.core.interactiveshell", "IPython.core.completerlib", "IPython.core.debugger", "IPython.core.historyapp",
    "IPython.core.magics", "IPython.core.oinspect", "IPython.extensions.storemagic", "IPython.utils.wildcard",
    "matplotlib_inline.backend_inline", "matplotlib_inline.config", "zmq.eventloop.zmqstream",
    "tornado.platform.asyncio", "comm", "sqlite3",
)  # fmt: skip


def _fork(yard: Path, folder: Path, job: launch.Job, entries: list[Path], stdout: int) -> Fork:
    """Ask for a process, put the first one of its namespaces into the control group, and let it go on."""
    request: Request = {"folder": folder.name, "scratch": job.limits.scratch}
    with contextlib.ExitStack() as on_error, socket.socket(socket.AF_UNIX) as opened, contextlib.ExitStack() as always:
        errors, writer = os.pipe()
        always.callback(os.close, writer)
        stderr = on_error.enter_context(os.fdopen(errors, "rb"))
        output: IO[bytes] | None = None
        if stdout == subprocess.PIPE:
            reader, sink = os.pipe()
            output = on_error.enter_context(os.fdopen(reader, "rb"))
        else:
            sink = os.open(os.devnull, os.O_WRONLY)
        always.callback(os.close, sink)

        opened.settimeout(_SOON)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        opened.connect(f"{yard}/{SOCKET}")
        socket.send_fds(opened, [json.dumps(request).encode()], [sink, writer, *job.handed])
        said, ancillary, _, _ = opened.recvmsg(4, socket.CMSG_SPACE(_CREDENTIALS.size))
        credentials = [data for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS]
        if said != b"here" or not credentials:
            os.set_blocking(errors, False)
            raise OSError(f"the process for warm kernels said {(stderr.read(1000) or b'').decode(errors='replace')!r}")
        pid = _CREDENTIALS.unpack(credentials[0][: _CREDENTIALS.size])[0]
        for entry in entries:
            entry.write_text(str(pid))
        connection = opened.dup()
        fork = Fork(pid, connection, output, stderr)
        connection.sendall(b"go")
        on_error.pop_all()
        return fork


def _about(hide: tuple[Path, ...]) -> str:
    return json.dumps(sorted({str(path) for path in this_python(hide).hidden}))
