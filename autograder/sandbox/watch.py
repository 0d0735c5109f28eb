"""Watches a sandbox from outside and ends it when it has used its time or, without a control group, its memory.

The kernel holds each process to its limits, but only someone outside sees the sum over processes and the clock on the
wall. The watch looks a few times a second; what it finds out is also the telemetry.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from autograder.sandbox.limits import Group, Limits, Usage

_PAUSE = 0.2  # seconds between two looks
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Watch(threading.Thread):
    """A thread that calls `kill` and leaves its reason in `reason` when a limit is passed."""

    def __init__(self, pid: int, group: Group | None, limits: Limits, kill: Callable[[], None]) -> None:
        super().__init__(daemon=True, name="sandbox-watch")
        self.pid, self.group, self.limits = pid, group, limits
        self.reason = ""
        self.starved = False  # whether it ended the sandbox for the time on the clock
        self._kill, self._end = kill, threading.Event()
        self._lock = threading.Lock()
        self._last, self._begin = Usage(), time.monotonic()
        self._waited: dict[int, float] = {}  # by process

    def run(self) -> None:
        while not self._end.wait(_PAUSE):
            if reason := self._passed():
                self.reason = reason
                self._kill()
                return

    def stop(self) -> Usage:
        """Stop watching; returns the last usage seen."""
        self._end.set()
        usage = self.usage()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(timeout=2)
        return usage

    def usage(self) -> Usage:
        """What the sandbox used; numbers never fall, also after its processes have gone."""
        with self._lock:
            now = _with_processes(self.pid, self.group.usage() if self.group else Usage(), self.group)
            for process in self._processes():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    self._waited[process] = waited_seconds(process)
            self._last = Usage(
                max(now.cpu_seconds, self._last.cpu_seconds),
                now.memory,
                max(now.memory, now.memory_peak, self._last.memory_peak),
                max(now.memory_kills, self._last.memory_kills),
                max(now.refused_processes, self._last.refused_processes),
                sum(self._waited.values()),
            )
            return self._last

    def _processes(self) -> list[int]:
        if self.group is not None:
            return self.group.processes()
        return sorted(_below(self.pid))

    def _passed(self) -> str:
        if time.monotonic() - self._begin > self.limits.wall_seconds:
            self.starved = True
            return f"it was stopped because it ran for more than {self.limits.wall_seconds} seconds"
        usage = self.usage()
        if usage.cpu_seconds > self.limits.cpu_seconds:
            return f"it was stopped because it used more than {self.limits.cpu_seconds} seconds of processor time"
        if usage.memory > self.limits.memory and not (self.group and self.group.limits_memory()):
            return f"it was stopped because it used more than {self.limits.memory / 2**30:.1f} GiB of memory"
        return ""


def _with_processes(pid: int, usage: Usage, group: Group | None) -> Usage:
    """Fill in from /proc what the control group, or its absence, leaves open."""
    has_cpu = group is not None and ("v2" in group.folders or "cpuacct" in group.folders)
    has_memory = group is not None and group.limits_memory()
    if has_cpu and has_memory:
        return usage
    cpu, memory = _tree(pid)
    return Usage(
        usage.cpu_seconds if has_cpu else cpu,
        usage.memory if has_memory else memory,
        usage.memory_peak,
        usage.memory_kills,
        usage.refused_processes,
    )


def waited_seconds(process: int | str = "self") -> float:
    """How long a process waited for a processor while it could have run (its first thread; /proc/PID/schedstat)."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


def _tree(root: int) -> tuple[float, int]:
    """Processor seconds (waited-for children included) and resident bytes of a process and all below it."""
    rows = _below(root).values()
    return sum(cpu for cpu, _ in rows), sum(memory for _, memory in rows)


def _below(root: int) -> dict[int, tuple[float, int]]:
    """A process and all below it: processor seconds and resident bytes of each."""
    seen: dict[int, tuple[int, float, int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                cpu = sum(int(number) for number in fields[11:15]) / _TICK
                seen[int(entry)] = (int(fields[1]), cpu, int(fields[21]) * _PAGE)
    below = {root}
    while more := {pid for pid, (parent, _, _) in seen.items() if parent in below} - below:
        below |= more
    return {pid: seen[pid][1:] for pid in below & seen.keys()}
