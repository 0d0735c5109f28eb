"""Attempts to use more of the machine than a sandbox may: memory, processes, threads, files, time."""

from __future__ import annotations

from dataclasses import replace

from autograder.sandbox.contents import size
from autograder.sandbox.limits import without_group
from autograder.sandbox.probes.attempt import LIMITS, Finding, Ran, run

_GROUP = f"To get a control group, {without_group()}"


def memory_is_bounded() -> Finding:
    few = replace(LIMITS, memory=2**29)
    whole = run("x = bytearray(6 * 10**9); print('6 GB', flush=True)", few)
    shared = run(
        "import mmap\nm = mmap.mmap(-1, 6 * 10**9)\nfor i in range(0, len(m), 4096): m[i] = 1\nprint('6 GB')",
        few,
    )
    parts = run(
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


def kernel_memory_is_bounded() -> Finding:
    """Memory and counters of the machine that no limit of a process covers."""
    ran = run("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    def attempt():
        if getattr(libc, name)(*args) < 0: raise OSError(ctypes.get_errno())
    return name, attempt
tries(call("memfd_create", b"x", 0), call("shmget", 0, 2**30, 0o1600), call("msgget", 0, 0o1600),
      call("semget", 0, 1, 0o1600), call("inotify_init1", 0), call("mq_open", b"/x", 0o102, 0o600, None))
""")
    return Finding("memory files, System V memory, inotify", ran.line == "nothing", f"could use {ran.line}")


def processes_are_bounded() -> Finding:
    ran = run("""
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
    ran = run("""
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


def _counted(name: str, ran: Ran) -> Finding:
    held = ran.line.isdigit() and int(ran.line) <= LIMITS.processes
    return Finding(name, held, f"got {ran.line}, with {LIMITS.processes} the limit", _GROUP)


def files_are_bounded() -> Finding:
    ran = run(
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
    held = one <= LIMITS.file_size and all_ <= 2 * LIMITS.scratch
    return Finding("a file of 300 MB, and files without end", held, f"got {size(one)}, and {size(all_)} in all")


def time_is_bounded() -> Finding:
    busy = run("for _ in range(2): os.fork()\nwhile True: pass", replace(LIMITS, cpu_seconds=2))
    idle = run("while True:\n try: time.sleep(60)\n except BaseException: pass", replace(LIMITS, wall_seconds=2))
    held = (
        "processor time" in busy.reason and "ran for more than" in idle.reason and max(busy.seconds, idle.seconds) < 30
    )
    return Finding(
        "running for ever",
        held,
        f"4 busy processes ended after {busy.seconds:.0f} s, a sleeping one after {idle.seconds:.0f} s",
    )
