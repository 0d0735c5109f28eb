"""Attempts to break out of the sandbox or to use more than it may, one function for each kind.

Each probe is a small program that a dishonest learner might write. It runs in a sandbox like any submission, and what
it achieved is judged from outside.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from autograder.sandbox.contents import CHECKS
from autograder.sandbox.interpreter import local_modules
from autograder.sandbox.probes.attempt import LIMITS, Finding
from autograder.sandbox.probes.attempt import run as _run
from autograder.sandbox.probes.use import (
    files_are_bounded,
    kernel_memory_is_bounded,
    memory_is_bounded,
    processes_are_bounded,
    threads_are_bounded,
    time_is_bounded,
)

_CANARY = "doctor-canary-51f0"


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
            r"""
import re
def secret(path, name):
    "Whether this is what its name says: a LaTeX package is called shadow too."
    if CANARY in name: return True
    if name not in ("shadow", "gshadow", ".bash_history", ".ssh"): return False
    files, text = [path], ""
    try: files = [os.path.join(path, one) for one in os.listdir(path)]
    except OSError: pass
    for file in files:
        try: text += open(file, errors="replace").read(10**5)
        except OSError: pass
    if "shadow" in name: return re.search(r"^[^:\s]+:[^:\n]*(:\d*){6}:|^[^:\s]+:[!*$][^:\n]*:", text, re.M)
    return bool(text)
def look():
    for here, folders, names in os.walk("/"):
        if here == "/": folders.remove("proc")
        for name in names + folders:
            if secret(os.path.join(here, name), name): return os.path.join(here, name)
    raise OSError
read = lambda path: lambda: open(path).read()
tries(("the gradebook", read(COURSE + "/gradebook.db")), ("a source", read(f"{COURSE}/source/{CANARY}.ipynb")),
      ("a file through /proc", read("/proc/1/root" + COURSE + "/gradebook.db")), ("passwords", read("/etc/shadow")),
      ("the grader's sources", lambda: os.listdir(PACKAGE)), ("by searching", look))
""",
            replace(LIMITS, wall_seconds=300),  # it looks at every file there is
            COURSE=str(course),
            PACKAGE=str(Path(__file__).parents[2]),
            CANARY=_CANARY,
        )
    return Finding("reading files", ran.line == "nothing", ran.reason or f"could read {ran.line}")


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


def process_1_is_closed() -> Finding:
    """It has the learner's user number, so its memory would be a way out of the filter and the limits."""
    ran = _run("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def write():
    with open("/proc/1/mem", "r+b", buffering=0) as memory: return memory.fileno()
def trace():
    if libc.ptrace(16, 1, 0, 0) < 0: raise OSError
def lacks(line):
    def attempt():
        if line in open("/proc/1/status").read(): raise OSError
    return "use it, since it lacks " + repr(line), attempt
def limits():
    here, there = (open(f"/proc/{process}/limits").read() for process in ("self", "1"))
    if here == there: raise OSError
tries(("write to its memory", write), ("trace it", trace), ("see its files", lambda: os.listdir("/proc/1/fd")),
      ("enter its root", lambda: os.listdir("/proc/1/root/")), lacks("Seccomp:\t2"), lacks("NoNewPrivs:\t1"),
      lacks("CapEff:\t0000000000000000"), ("use it, since it has other limits", limits),
      ("kill it", lambda: (os.kill(1, 9), time.sleep(0.2))[0] or os.kill(1, 19) or 1 / 0))
""")
    return Finding("process 1 of the sandbox", ran.line == "nothing", ran.reason or f"could {ran.line}")


def every_place_to_write_is_its_own() -> Finding:
    """Only file systems in memory, of a limited size, which no other process mounts."""
    ran = _run("""
def mounted():
    rows = {line.split()[1]: line.split()[2:4] for line in open("/proc/self/mounts")}  # the last one hides the others
    found = [place for place, (kind, options) in rows.items()
             if "rw" in options.split(",") and kind not in ("proc", "devpts", "devtmpfs")
             and not (kind == "tmpfs" and ("size=" in options or place.startswith("/dev/")))]
    return "/".join(found) if found else 1 / 0
def nested():
    os.chdir("/run")
    for _ in range(25):
        os.mkdir("n" * 240); os.chdir("n" * 240)
tries(("write to", mounted), ("nest folders in /run", nested))
""")
    return Finding("writing to the machine's disk", ran.line == "nothing", f"could {ran.line}")


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
    process_1_is_closed,
    every_place_to_write_is_its_own,
    kernel_memory_is_bounded,
]
