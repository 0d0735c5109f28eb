"""How much a sandbox may use, and the control groups that hold it to that.

A limit belongs to the sandbox as a whole, not to a process, so that a hundred small processes count as one large one.
Linux control groups do this (version 2, or version 1 where it is still mounted) and hold for root too. Where no group
can be made, `entry` limits each process (`setrlimit`) and `watch` looks after their sum.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_COUNT = itertools.count()
_PREFIX = "autograder-"


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use, all its processes together. Bytes, seconds and counts."""

    memory: int = 2 * 2**30
    processes: int = 128  # threads count too, as they do for Linux
    file_size: int = 100 * 2**20  # of one file
    scratch: int = 256 * 2**20  # all files together
    cpu_seconds: int = 600
    wall_seconds: int = 3600  # far beyond what a loaded machine makes of the processor time


@dataclass(frozen=True)
class Usage:
    """What a sandbox used so far; `memory_kills` and `refused_processes` count how often it ran into a limit."""

    cpu_seconds: float = 0.0
    memory: int = 0  # bytes
    memory_peak: int = 0
    memory_kills: int = 0
    refused_processes: int = 0
    waited_seconds: float = 0.0  # that its processes could have run and no processor was free


@dataclass
class Group:
    """One sandbox's control group: a folder in each hierarchy. A process enters by its number written to `entries`.

    Groups share the processors evenly, however many processes each of them has.
    """

    folders: dict[str, Path]  # "memory", "pids", "cpuacct", "cpu" of version 1, or "v2"
    peak: int = field(default=0)

    @property
    def entries(self) -> list[Path]:
        return [folder / "cgroup.procs" for folder in self.folders.values()]

    @property
    def enforced(self) -> list[str]:
        """In words, for people."""
        if "v2" in self.folders:
            return ["memory (cgroup v2)", "processes (cgroup v2)"]
        return [
            f"{word} (cgroup v1)" for key, word in (("memory", "memory"), ("pids", "processes")) if key in self.folders
        ]

    def limits_memory(self) -> bool:
        return "v2" in self.folders or "memory" in self.folders

    def limits_processes(self) -> bool:
        return "v2" in self.folders or "pids" in self.folders

    def usage(self) -> Usage:
        """What its processes used, those that have ended included."""
        if v2 := self.folders.get("v2"):
            memory = _number(v2 / "memory.current")
            self.peak = max(self.peak, memory, _number(v2 / "memory.peak"))
            return Usage(
                _number(v2 / "cpu.stat", "usage_usec") / 1e6,
                memory,
                self.peak,
                _number(v2 / "memory.events", "oom_kill"),
                _number(v2 / "pids.events", "max"),
            )
        none = Path(os.devnull)
        memory_folder, pids, cpuacct = (self.folders.get(key, none) for key in ("memory", "pids", "cpuacct"))
        return Usage(
            _number(cpuacct / "cpuacct.usage") / 1e9,
            _number(memory_folder / "memory.usage_in_bytes"),
            _number(memory_folder / "memory.max_usage_in_bytes"),
            _number(memory_folder / "memory.oom_control", "oom_kill"),
            _number(pids / "pids.events", "max"),
        )

    def processes(self) -> list[int]:
        """The numbers of its processes."""
        return [int(number) for number in _text(next(iter(self.folders.values())) / "cgroup.procs").split()]

    def kill(self) -> None:
        """Kill every process in it."""
        for folder in self.folders.values():
            with contextlib.suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
            for number in _text(folder / "cgroup.procs").split():
                with contextlib.suppress(OSError):
                    os.kill(int(number), signal.SIGKILL)

    def remove(self, seconds: float = 5.0) -> None:
        """Delete the group once its processes have gone; they are killed first."""
        deadline = time.monotonic() + seconds
        left = list(self.folders.values())
        while left:
            self.kill()
            left = [folder for folder in left if not _rmdir(folder)]
            if not left or time.monotonic() > deadline:
                return
            time.sleep(0.01)


def make_group(limits: Limits) -> Group | None:
    """A new group with these limits; None where this user can make none."""
    name = f"{_PREFIX}{os.getpid()}-{next(_COUNT)}-{os.urandom(3).hex()}"
    settings = {
        "memory.max": limits.memory,
        "memory.swap.max": 0,
        "memory.oom.group": 0,
        "pids.max": limits.processes,
    }
    for parent in _parents("cgroup2", ""):
        for controllers in ("+cpu", "+memory +pids"):
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(controllers)
        if (folder := _make(parent / name, settings, ("memory.max", "pids.max"))) is not None:
            return Group({"v2": folder})
    old = {
        "memory": {"memory.limit_in_bytes": limits.memory, "memory.memsw.limit_in_bytes": limits.memory},
        "pids": {"pids.max": limits.processes},
        "cpuacct": {},
        "cpu": {},
    }
    folders: dict[str, Path] = {}
    for controller, values in old.items():
        for parent in _parents("cgroup", controller):
            made = parent / name in folders.values()  # some hierarchies have several controllers
            if (folder := parent / name if made else _make(parent / name, values, tuple(values)[:1])) is not None:
                folders[controller] = folder
                break
    return Group(folders) if folders else None


def without_group() -> str:
    """How to get control groups where `make_group` found none."""
    return (
        "run it as root, or inside `systemd-run --user --scope -p Delegate=yes ...`, "
        "or in a container started with --cgroupns=private and a writable /sys/fs/cgroup"
    )


def _parents(kind: str, controller: str) -> list[Path]:
    """Where this process may make a group: its own group first, then those above it, in the given hierarchy."""
    for line in _text(Path("/proc/self/mountinfo")).splitlines():
        left, _, right = line.partition(" - ")
        if not right:
            continue
        filesystem, _, options = right.split(" ", 2)
        if filesystem != kind or (controller and controller not in options.split(",")):
            continue
        root, mount = left.split(" ")[3:5]
        own = _own_path(controller)
        if root != "/" and own.startswith(root):
            own = own[len(root) :]
        here = Path(mount) / own.strip("/")
        inside = [path for path in (here, *here.parents) if path == Path(mount) or Path(mount) in path.parents]
        return [path for path in inside if os.access(path, os.W_OK) and os.access(path / "cgroup.procs", os.W_OK)]
    return []


def _own_path(controller: str) -> str:
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _make(folder: Path, settings: dict[str, int], demanded: tuple[str, ...]) -> Path | None:
    """A new group; None, with nothing left behind, if a demanded setting does not hold there."""
    _sweep(folder.parent)
    try:
        folder.mkdir()
    except OSError:
        return None
    for file, value in settings.items():
        try:
            (folder / file).write_text(str(value))
        except OSError:
            if file in demanded:
                _rmdir(folder)
                return None
    return folder


@lru_cache(maxsize=8)
def _sweep(parent: Path) -> None:
    """Remove groups that a killed grader left; one that still holds a process stays."""
    for folder in parent.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            _rmdir(folder)


def _rmdir(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(path: Path, key: str = "") -> int:
    """The number in a control file, or the one after `key` on a line of it; 0 if there is none."""
    for line in _text(path).splitlines():
        words = line.split()
        if not key and len(words) == 1 and words[0].isdigit():
            return int(words[0])
        if len(words) == 2 and words[0] == key:
            return int(words[1])
    return 0
