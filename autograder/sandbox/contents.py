"""What a sandbox is given: its orders, copies of files, who is who, and a temporary folder that holds them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from autograder.sandbox import entry
from autograder.sandbox.interpreter import copy_allowed
from autograder.sandbox.limits import Limits

FILES = "/run/sandbox"
CHECKS = "autograder.checks"  # what test cells import; holds no answers
_PREFIX, _OLD = "autograder-", 3600  # of temporary folders; seconds


@dataclass(frozen=True)
class Job:
    """What to run, and what it may see."""

    argv: Sequence[str]
    limits: Limits = field(default_factory=Limits)
    inputs: Path | None = None  # its plain files, except notebooks, are copied into the working folder
    allow: tuple[str, ...] = (CHECKS,)  # modules of local packages that may be imported
    hide: tuple[Path, ...] = ()  # needed only for what lies inside a system or Python folder
    handed: tuple[int, ...] = ()  # open files to hand over; inside, their numbers begin at entry.FIRST_HANDED
    files: dict[str, str] = field(default_factory=dict)  # name -> text, seen read-only in FILES


def furnish(folder: Path, job: Job, outside: int | None, alive: int | None = None) -> None:
    """Write what the sandbox is given: its orders, the files copied into it, and who is who."""
    files, etc = folder / "files", folder / "etc"
    (files / "lib").mkdir(parents=True)
    (files / "inputs").mkdir()
    etc.mkdir()
    (folder / "empty").touch()
    for name, text in {
        "passwd": f"root:x:0:0::/:/bin/false\nlearner:x:{entry.USER}:{entry.USER}::{entry.SCRATCH}:/bin/sh\n",
        "group": f"root:x:0:\nlearner:x:{entry.USER}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }.items():
        (etc / name).write_text(text)
    for name, text in job.files.items():
        (files / name).write_text(text)
    shutil.copyfile(entry.__file__, files / "entry.py")
    copy_allowed(job.allow, files / "lib")
    if job.inputs is not None:
        copy_inputs(job.inputs, files / "inputs", job.limits.scratch)
    limits = job.limits
    rlimits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.file_size,
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_DATA": limits.memory,  # a MemoryError in the cell at fault, before the whole kernel is killed
        "RLIMIT_NOFILE": 1024,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": 1024,
    }
    if _counts_by_namespace():
        rlimits["RLIMIT_NPROC"] = limits.processes
    orders: entry.Orders = {
        "alive": alive,
        "handed": list(job.handed),
        "become": outside,
        "rlimits": rlimits,
        "argv": list(job.argv),
    }
    (files / "job.json").write_text(json.dumps(orders))
    for path in (files, *files.rglob("*"), *etc.iterdir(), folder / "empty"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # whatever the umask: another user reads them


def copy_inputs(source: Path, target: Path, most: int) -> None:
    """Copy a submission's plain files, except notebooks: they hold hidden tests once nbgrader has restored them.

    Links and everything that is no plain file are left out. Raises RuntimeError past `most` bytes or 2,000 files.
    """
    count = total = 0
    for here, folders, names in os.walk(source, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(here) / name
            if path.suffix == ".ipynb" or path.is_symlink() or not path.is_file():
                continue
            count, total = count + 1, total + path.stat().st_size
            if total > most or count > 2000:
                raise RuntimeError(f"the files of {source.name} are too many or larger than {size(most)} together")
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(handle, "rb") as reader, place.open("wb") as writer:
                shutil.copyfileobj(reader, writer)


def _counts_by_namespace() -> bool:
    """Since Linux 5.14 a limit on processes counts those of the own user namespace only, so it can be low."""
    version = os.uname().release.split("-")[0].split(".")
    return [int(part) for part in version[:2] if part.isdigit()] >= [5, 14]


def stranger() -> int:
    """A user number that belongs to no one: systemd keeps these for passing services."""
    return 61184 + os.getpid() % 4336


def size(number: int) -> str:
    """Bytes for people."""
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"


def short_folder() -> str:
    """A folder for temporary folders whose path is short: a socket's path may have 107 bytes."""
    return "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()


def temporary(kind: str, inside_of: Path | None = None) -> Path:
    """A new folder with a short path that tells whose it is, so that what a killed grader left can be deleted."""
    place = inside_of or Path(short_folder())
    _sweep(place)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{kind}-", dir=place))


@lru_cache(maxsize=8)
def _sweep(place: Path) -> None:
    """Delete folders whose process has gone, if they are ours and old enough to belong to no other container."""
    for folder in place.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if not owner.isdigit() or os.path.exists(f"/proc/{owner}"):
            continue
        with contextlib.suppress(FileNotFoundError):  # another process may sweep too
            about = folder.lstat()
            if about.st_uid == os.geteuid() and time.time() - about.st_mtime > _OLD:
                shutil.rmtree(folder, ignore_errors=True)  # which refuses a link
