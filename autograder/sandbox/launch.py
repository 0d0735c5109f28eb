"""Runs a program that nobody trusts: under bubblewrap, in namespaces of its own, with nothing to read, write or reach.

The sandbox starts from an empty file system and gets, read-only, the system's libraries, the running Python and copies
of the files it is given; the only place to write is a scratch of limited size in memory. It has no network, no
environment, no sight of other processes, and it is no user of this machine. Started by root it gives up root's rights
inside, after the binds are made, so that a Python below a closed home directory can be used. Without a working sandbox
nothing runs: `check` says what is missing and how to mend it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from functools import lru_cache
from pathlib import Path
from typing import IO, Protocol

from autograder.sandbox import bwrap, contents, entry
from autograder.sandbox.bwrap import SandboxError
from autograder.sandbox.contents import Job, size
from autograder.sandbox.interpreter import this_python
from autograder.sandbox.limits import Group, Limits, Usage, make_group, without_group
from autograder.sandbox.watch import Watch

_KILLED = (-9, 137)  # exit statuses after SIGKILL
_CONFIRMED: list[str] = []  # what is enforced, once that was proved


class Process(Protocol):
    """What is needed of `subprocess.Popen`."""

    pid: int
    returncode: int | None

    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


class Sandbox:
    """A running job. Stop it in the end: that frees its control group and its folder."""

    def __init__(
        self,
        process: Process,
        folder: Path,
        group: Group | None,
        limits: Limits,
        hold: int | None = None,
    ) -> None:
        self.process, self.folder, self.group, self.limits, self._hold = process, folder, group, limits, hold
        self._words: deque[bytes] = deque(maxlen=16)  # the end of what it wrote on standard error
        self._watch = Watch(process.pid, group, limits, self.kill)
        self._reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
        self._reader.start()
        self._watch.start()

    @property
    def enforced(self) -> list[str]:
        return enforced(self.group)

    def usage(self) -> Usage:
        """What it used so far."""
        return self._watch.usage()

    def kill(self) -> None:
        """End all of its processes at once."""
        if self.process.poll() is None:
            self.process.kill()  # bubblewrap dies, and with it everything inside
        if self.group is not None:
            self.group.kill()

    def stop(self) -> Usage:
        """Kill what still runs and clean up; returns what was used."""
        self.kill()
        self.process.wait()
        self._reader.join(timeout=1)
        usage = self._watch.stop()
        if self._hold is not None:
            os.close(self._hold)
            self._hold = None
        if self.group is not None:
            self.group.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
        return usage

    def reason(self) -> str:
        """Why it ended, in words for a learner; empty while it runs and if it ended by itself with exit status 0."""
        code = self.process.poll()
        if self._watch.reason:
            return self._watch.reason
        if code is None or code == 0:
            return ""
        if self.usage().memory_kills:
            return f"it was stopped because it used more than the {size(self.limits.memory)} of memory it may use"
        if code in _KILLED:
            return "it was killed"
        if code in (-24, 152):  # SIGXCPU
            return f"it was stopped because it used more than {self.limits.cpu_seconds} seconds of processor time"
        return f"it ended by itself, with exit status {code}"

    def from_outside(self) -> str:
        """What outside may have ended it: "starved" by the far limit on the clock, "killed", or empty for neither.

        A program can also kill itself, which looks the same as being killed.
        """
        if self._watch.reason:
            return "starved" if self._watch.starved else ""
        return "killed" if self.process.poll() in _KILLED and not self.usage().memory_kills else ""

    def words(self) -> str:
        """The last of what it wrote on standard error."""
        return b"".join(self._words).decode(errors="replace")[-4000:]

    def _read(self, stream: IO[bytes]) -> None:
        # Read always, keep little: a program that floods its standard error must neither block nor fill our memory.
        while block := os.read(stream.fileno(), 4096):
            self._words.append(block)


def start(job: Job, stdout: int = subprocess.DEVNULL) -> Sandbox:
    """Start the job in a sandbox of its own. Raises SandboxError if bubblewrap is missing or the job is impossible."""
    program = bwrap.find_bubblewrap()
    folder = contents.temporary("job")
    group = None
    alive, hold = os.pipe()  # who holds the other end is alive; see entry.py
    try:
        outside = contents.stranger() if os.geteuid() == 0 else None
        group = make_group(job.limits)
        contents.furnish(folder, job, outside, alive)
        command = [
            *bwrap.enter(group.entries if group else []),
            program,
            *bwrap.arguments(job, folder, this_python(job.hide), own_user=outside is None),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            start_new_session=True,
            pass_fds=[alive, *job.handed],
        )
    except BaseException as error:
        os.close(hold)
        if group is not None:
            group.remove()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, (OSError, LookupError, RuntimeError)):
            raise SandboxError(f"the sandbox cannot be set up: {error}") from error
        raise
    finally:
        os.close(alive)
    return Sandbox(process, folder, group, job.limits, hold)


def check() -> list[str]:
    """Prove once in this process that a sandbox works; returns what is enforced. Raises SandboxError, with the cure."""
    bwrap.find_bubblewrap()  # it may have gone since
    if _CONFIRMED:
        return list(_CONFIRMED)
    sandbox = start(Job([sys.executable, "-I", "-S", "-c", "pass"], Limits(wall_seconds=60)))
    try:
        sandbox.process.wait(timeout=60)
        if code := sandbox.process.returncode:
            sandbox._reader.join(timeout=1)
            raise SandboxError(bwrap.cure(sandbox.words(), code))
        _CONFIRMED.extend(sandbox.enforced)
        return list(_CONFIRMED)
    except subprocess.TimeoutExpired:
        raise SandboxError("a sandbox did not get to run an empty program within 60 seconds") from None
    finally:
        sandbox.stop()


def enforced(group: Group | None) -> list[str]:
    """What holds a sandbox to its limits on this machine, in words."""
    words = ["files, network, processes and environment (namespaces)"]
    words += group.enforced if group else []
    if group is None or not group.limits_memory():
        words.append(f"memory (each process by setrlimit, their sum watched; for a control group {without_group()})")
    if group is None or not group.limits_processes():
        words.append("processes (setrlimit)")
    words += ["file size (setrlimit)", "scratch size (tmpfs)", "processor and wall time (watched)"]
    words.append("system calls (seccomp)" if _has_filter() else "no system-call filter on this architecture")
    return words


@lru_cache(maxsize=1)
def _has_filter() -> bool:
    import platform

    return entry.seccomp_program(platform.machine()) is not None
