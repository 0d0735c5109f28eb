"""Attempts to break out of the sandbox or to use more than it may, one function for each kind.

The one idea: each probe is a small program that a dishonest learner might write; it runs in a sandbox like any
submission, and what it achieved is judged from outside.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .interpreter import local_modules
from .limits import Limits, without_group
from .sandbox import CHECKS, Job, size, start

_LIMITS = Limits(memory=2**30, processes=64, file_size=50 * 2**20, scratch=100 * 2**20, cpu_seconds=30, wall_seconds=60)
_CANARY = "doctor-canary-51f0"
_GROUP = f"To get a control group, {without_group()}"


@dataclass(frozen=True)
class Finding:
    """One limit: what was tried, whether it held, what happened, and what to do if it did not."""

    name: str
    held: bool
    what: str
    mend: str = ""


@dataclass(frozen=True)
class _Ran:
    """A probe's program, over."""

    said: str
    code: int
    reason: str
    seconds: float
    memory_peak: int

    @property
    def line(self) -> str:
        return (self.said.strip().splitlines() or [""])[-1]


def _run(code: str, limits: Limits = _LIMITS, **words: str) -> _Ran:
    """Run a probe's program; `words` replace NAME in its text by a quoted string."""
    for name, word in words.items():
        code = code.replace(name, repr(word))
    begin = time.monotonic()
    box = start(Job([sys.executable, "-c", _TRY + code], limits), stdout=subprocess.PIPE)
    try:
        assert box.process.stdout is not None
        said = box.process.stdout.read(100_000)
        status = box.process.wait()
        reason = box.reason()
        seconds = time.monotonic() - begin
    finally:
        usage = box.stop()
    return _Ran(said.decode(errors="replace"), status, reason, seconds, usage.memory_peak)


_TRY = """
import os, time
def tries(*attempts):
    done = []
    for name, attempt in attempts:
        try:
            done.append(f"{name} ({attempt()!s:.60})")
        except Exception:
            pass
    print("; ".join(done) or "nothing")
"""


@contextmanager
def _course() -> Iterator[Path]:
    """A course's files on this machine that no learner may read or write."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "source").mkdir()
        for name in ("gradebook.db", f"source/{_CANARY}.ipynb"):
            (Path(folder) / name).write_text(_CANARY)
        yield Path(folder)


def reads_no_file() -> Finding:
    with _course() as course:
        ran = _run(
            """
def look():
    for here, folders, names in os.walk("/"):
        if here == "/": folders.remove("proc")
        found = [name for name in names + folders if CANARY in name or name in ("shadow", ".bash_history", ".ssh")]
        if found: return os.path.join(here, found[0])
    raise OSError
read = lambda path: lambda: open(path).read()
tries(("the gradebook", read(COURSE + "/gradebook.db")), ("a source", read(f"{COURSE}/source/{CANARY}.ipynb")),
      ("a file through /proc", read("/proc/1/root" + COURSE + "/gradebook.db")), ("passwords", read("/etc/shadow")),
      ("the grader's sources", lambda: os.listdir(PACKAGE)), ("by searching", look))
""",
            COURSE=str(course),
            PACKAGE=str(Path(__file__).parent),
            CANARY=_CANARY,
        )
    return Finding("reading files", ran.line == "nothing", f"could read {ran.line}")


def writes_no_file() -> Finding:
    with _course() as course:
        ran = _run(
            """
import site
def write(path):
    def attempt():
        with open(path, "w") as file: file.write("x")
        return path
    return attempt
tries(*((path, write(path)) for path in (COURSE + "/gradebook.db", "/x", "/etc/passwd", "/usr/x", "/dev/x", "/run/x",
      "/run/sandbox/job.json", "/proc/sys/kernel/hostname", *(folder + "/x.pth" for folder in site.getsitepackages()))))
""",
            COURSE=str(course),
        )
        held = ran.line == "nothing" and (course / "gradebook.db").read_text() == _CANARY
    return Finding("writing outside the scratch", held, f"could write {ran.line}")


def reaches_no_network() -> Finding:
    with socket.create_server(("0.0.0.0", 0)) as listener, socket.socket(socket.AF_UNIX) as local:
        name = f"{_CANARY}-{os.getpid()}"
        local.bind("\0" + name)  # an abstract name, which no folder protects
        local.listen()
        ran = _run(
            """
import socket
def connect(host):
    def attempt():
        with socket.create_connection((host, int(PORT)), timeout=2): return host
    return f"a listener at {host}", attempt
def abstract():
    with socket.socket(socket.AF_UNIX) as s: s.connect("\\0" + LOCAL)
def family(number):
    return lambda: socket.socket(number).close()
tries(connect("127.0.0.1"), connect("localhost"), connect(ADDRESS), ("an abstract socket", abstract),
      ("DNS", lambda: socket.getaddrinfo("example.org", 80)), ("vsock", family(40)), ("raw packets", family(17)))
""",
            PORT=str(listener.getsockname()[1]),
            LOCAL=name,
            ADDRESS=_own_address(),
        )
    return Finding("the network", ran.line == "nothing", f"could use {ran.line}")


def memory_is_bounded() -> Finding:
    few = replace(_LIMITS, memory=2**29)
    whole = _run("x = bytearray(6 * 10**9); print('6 GB', flush=True)", few)
    shared = _run(
        "import mmap\nm = mmap.mmap(-1, 6 * 10**9)\nfor i in range(0, len(m), 4096): m[i] = 1\nprint('6 GB')",
        few,
    )
    parts = _run(
        """
for _ in range(6):
    if os.fork() == 0:
        x = b"1" * (3 * 10**8)
        time.sleep(2)
        os._exit(0)
print("6 GB" if all(os.wait()[1] == 0 for _ in range(6)) else "less", flush=True)
""",
        few,
    )
    most = max(ran.memory_peak for ran in (whole, shared, parts))
    held = "6 GB" not in whole.said + shared.said + parts.said and most < 2 * few.memory
    return Finding("6 GB of memory", held, f"got {size(most)}, with {size(few.memory)} the limit", _GROUP)


def processes_are_bounded() -> Finding:
    ran = _run("""
n = 0
try:
    while n < 500:
        if os.fork() == 0: time.sleep(5); os._exit(0)
        n += 1
except OSError: pass
print(n, flush=True)
""")
    return _counted("500 processes", ran)


def threads_are_bounded() -> Finding:
    ran = _run("""
import threading
n = 0
try:
    while n < 500:
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        n += 1
except RuntimeError: pass
print(n, flush=True)
os._exit(0)
""")
    return _counted("500 threads", ran)


def _counted(name: str, ran: _Ran) -> Finding:
    held = ran.line.isdigit() and int(ran.line) <= _LIMITS.processes
    return Finding(name, held, f"got {ran.line}, with {_LIMITS.processes} the limit", _GROUP)


def files_are_bounded() -> Finding:
    ran = _run(
        """
def fill(name, most):
    total = 0
    try:
        with open(name, "wb") as file:
            while total < most: total += file.write(bytes(10**6))
    except OSError: pass
    return total
one = fill("one", 300 * 10**6); os.remove("one")
print(one, sum(fill(f"{place}/{i}", 40 * 10**6) for place in ("/scratch", "/dev/shm", "/tmp") for i in range(8)))
"""
    )
    one, all_ = (int(word) for word in ran.line.split()) if ran.line.replace(" ", "").isdigit() else (10**12, 10**12)
    held = one <= _LIMITS.file_size and all_ <= 2 * _LIMITS.scratch
    return Finding("a file of 300 MB, and files without end", held, f"got {size(one)}, and {size(all_)} in all")


def time_is_bounded() -> Finding:
    busy = _run("for _ in range(2): os.fork()\nwhile True: pass", replace(_LIMITS, cpu_seconds=2))
    idle = _run("while True:\n try: time.sleep(60)\n except BaseException: pass", replace(_LIMITS, wall_seconds=2))
    held = (
        "processor time" in busy.reason and "ran for more than" in idle.reason and max(busy.seconds, idle.seconds) < 30
    )
    return Finding(
        "running for ever",
        held,
        f"4 busy processes ended after {busy.seconds:.0f} s, a sleeping one after {idle.seconds:.0f} s",
    )


def environment_is_empty() -> Finding:
    os.environ["DOCTOR_SECRET"] = _CANARY
    try:
        ran = _run("print(*os.environ, flush=True)")
    finally:
        del os.environ["DOCTOR_SECRET"]
    names = set(ran.line.split())
    expected = {
        "PATH",
        "HOME",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "LANG",
        "PYTHONPATH",
        "PYTHONHASHSEED",
        "IPYTHONDIR",
        "PWD",
    }
    more = {name for name in names - expected if not name.endswith("_NUM_THREADS")}
    return Finding(
        "secrets in the environment", bool(names) and not more, f"could read {', '.join(sorted(more)) or 'nothing'}"
    )


def solution_is_not_importable() -> Finding:
    package = CHECKS.partition(".")[0]
    modules = [name for name in local_modules() if name != package] + [f"{package}.sandbox", f"{package}.release"]
    ran = _run(
        "import importlib\ntries(*((name, lambda name=name: importlib.import_module(name)) for name in NAMES.split()))",
        NAMES=" ".join(modules),
    )
    return Finding(
        "importing the course's own packages", ran.line == "nothing", f"of {', '.join(modules)} could import {ran.line}"
    )


def other_processes_are_unseen() -> Finding:
    ran = _run(f"""
def others():
    seen = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid not in ("1", "2", str(os.getpid()))]
    return seen[0]
tries(("see", others), ("signal", lambda: os.kill({os.getpid()}, 0)))
""")
    return Finding("other processes", ran.line == "nothing", f"could {ran.line}")


def system_calls_are_refused() -> Finding:
    ran = _run("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    def attempt():
        if getattr(libc, name)(*args) < 0: raise OSError(ctypes.get_errno())
    return name, attempt
tries(call("unshare", 0x10000000), call("mount", b"none", b"/scratch", b"tmpfs", 0, None), call("setns", 0, 0),
      call("ptrace", 0, 0, 0, 0), call("setuid", 0), call("syscall", 425, 8, 0), call("chroot", b"/scratch"))
""")
    return Finding("mounts, new namespaces, tracing", ran.line == "nothing", f"could use {ran.line}")


def kernel_starts() -> Finding:
    """Through Jupyter, as nbgrader starts it."""
    from jupyter_client.manager import KernelManager

    from . import kernelspec

    with tempfile.TemporaryDirectory() as folder:
        manager = KernelManager(kernel_name=kernelspec.ensure(Path(folder)))
        begin = time.monotonic()
        try:
            manager.start_kernel(cwd=folder)
            client = manager.blocking_client()
            client.start_channels()
            client.wait_for_ready(timeout=60)
            said = client.execute("x = 1", reply=True, timeout=30)["content"]["status"]
            client.stop_channels()
            return Finding("a notebook's kernel starts", said == "ok", f"ready in {time.monotonic() - begin:.1f} s")
        except Exception as error:
            mend = "Install the course again (`make lab`): Jupyter finds the sandbox by the package's entry point"
            return Finding("a notebook's kernel starts", False, f"{type(error).__name__}: {error}", mend)
        finally:
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)


def _own_address() -> str:
    """This machine's address in its network, else loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


PROBES: list[Callable[[], Finding]] = [
    reads_no_file,
    writes_no_file,
    reaches_no_network,
    memory_is_bounded,
    processes_are_bounded,
    threads_are_bounded,
    files_are_bounded,
    time_is_bounded,
    environment_is_empty,
    solution_is_not_importable,
    other_processes_are_unseen,
    system_calls_are_refused,
    kernel_starts,
]
