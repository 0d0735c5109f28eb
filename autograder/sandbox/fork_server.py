"""Runs in a sandbox of its own and forks kernels that have Python, NumPy and torch imported already.

Importing costs seconds and forking milliseconds, and nothing of a learner's has run before the fork. Each kernel still
gets everything of its own: namespaces (processes, mounts, network, ipc, host name, user), scratch, files, user rights,
limits and system-call filter. Root's bubblewrap starts the server (`warm_kernels`), with the standard library alone; it
keeps root's rights for the forking alone.

One request a connection: a line of JSON, and open files: standard output, standard error, what is handed over. Two
processes come of it, since forking a large process is what takes the time: the first one of new namespaces, which
prepares them, waits for the rest and tells the exit status, and the kernel. Both go on after the other side has put the
first into a control group and said so.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import sys
from typing import TypedDict

if __package__:
    from autograder.sandbox import entry
else:
    import entry  # type: ignore[no-redef]  # beside this file in the sandbox

YARD = "/run/yard"  # the folder shared with the host; one folder in it for each kernel
SOCKET = "socket"

_NEW_PROCESSES = 0x2000_0000
_NEW = 0x0002_0000 | 0x0400_0000 | 0x0800_0000 | 0x4000_0000  # mounts, host name, ipc, network
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


class Request(TypedDict):
    """What a new kernel is asked for; sent by `warm_kernels`."""

    folder: str  # its own, in YARD
    scratch: int  # bytes


def main(modules: list[str]) -> None:
    entry.stop_if_alone(entry.read_orders()["alive"])
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    with contextlib.suppress(Exception):
        _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that have ended
    here = os.open("/proc/self/ns/pid", os.O_RDONLY)
    gc.collect()
    gc.freeze()  # the collector would write to every object and so copy the shared pages
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{YARD}/{SOCKET}")
        server.listen(64)
        while True:
            connection, _ = server.accept()
            _call(_libc().unshare, _NEW_PROCESSES)  # for the next child
            if os.fork() == 0:
                server.close()
                _first(connection)
            _call(_libc().setns, here, _NEW_PROCESSES)
            connection.close()


def _warm_up() -> None:
    """Do once what is slow the first time in each kernel: telling an error, seeding."""
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    from IPython.core.ultratb import AutoFormattedTB

    try:
        exec(compile("def warm():\n    raise ValueError(1)\nwarm()", "<ipython-input-1>", "exec"))
    except ValueError:
        AutoFormattedTB(mode="Context", theme_name="linux").structured_traceback(*sys.exc_info())


def _first(connection: socket.socket) -> None:
    """Process 1 of new namespaces. Does not return."""
    code = 125
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line, descriptors, _, _ = socket.recv_fds(connection, 65536, 16)
        request = json.loads(line)
        os.dup2(descriptors[0], 1)
        os.dup2(descriptors[1], 2)
        connection.sendall(b"here")
        _call(_libc().unshare, _NEW)
        if connection.recv(2) != b"go":
            os._exit(125)
        _mount(request)
        _loopback()
        asked, mapped = os.pipe(), os.pipe()
        kernel = os.fork()
        if kernel == 0:
            _kernel(asked[1], mapped[0], descriptors[2:])
        os.close(asked[1])
        if (user := os.read(asked[0], 16)) and entry.map_users(kernel, int(user)):
            entry.restrict(entry.read_orders()["rlimits"])
            entry.set_dumpable(False)
            os.write(mapped[1], b"x")
        os.close(mapped[1])
        while True:
            pid, status = os.wait()  # orphans come to process 1 too
            if pid == kernel:
                code = os.waitstatus_to_exitcode(status)
                break
    except BaseException as error:
        print(f"fork_server: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        with contextlib.suppress(OSError):
            connection.sendall(struct.pack("i", code))
        os._exit(0)  # and with it every process of the namespace


def _kernel(ask: int, answer: int, handed: list[int]) -> None:
    """The process in which a learner's code will run. Does not return."""
    code = 125
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        orders = entry.read_orders()

        def mapped() -> bool:
            os.write(ask, str(orders["become"]).encode())
            return os.read(answer, 1) == b"x"

        entry.confine(orders, mapped)
        entry.hand_over(handed)
        os.closerange(3, entry.FIRST_HANDED)
        os.closerange(entry.FIRST_HANDED + len(handed), 4096)
        entry.enter_scratch()
        importlib.invalidate_caches()  # the folder of allowed modules is another one now
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # every fork has the same state
        _, how, what, *words = orders["argv"]  # python -m MODULE ..., or python -c TEXT
        sys.argv = [what, *words]
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, "")
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:
        print(f"sandbox: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


def _mount(request: Request) -> None:
    """The file system as this kernel sees it: its own files, sockets, scratch and processes, and nobody else's."""
    mine, careful = f"{YARD}/{request['folder']}", _MS_NOSUID | _MS_NODEV
    _do_mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _do_mount(f"{mine}/files", "/run/sandbox", "", _MS_BIND)
    _do_mount("none", "/run/sandbox", "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | careful)
    _do_mount("tmpfs", YARD, "tmpfs", _MS_RDONLY | careful, "size=4096")
    _do_mount("tmpfs", entry.SCRATCH, "tmpfs", careful, f"size={request['scratch']},mode=755")
    _do_mount("tmpfs", "/dev/shm", "tmpfs", careful, f"size={request['scratch']},mode=1777")
    _do_mount("proc", "/proc", "proc", careful | _MS_NOEXEC)
    for name in ("sys", "sysrq-trigger", "irq", "bus"):
        if os.path.exists(f"/proc/{name}"):
            _do_mount(f"/proc/{name}", f"/proc/{name}", "", _MS_BIND)
            _do_mount("none", f"/proc/{name}", "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | careful | _MS_NOEXEC)


def _do_mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    try:
        _call(_libc().mount, source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: mounting {target}") from None


def _loopback() -> None:
    """Bring the new network's only interface up, as bubblewrap does."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


_libc, _call = entry._libc, entry._call

if __name__ == "__main__":
    main(sys.argv[1:])
