"""Runs a program that nobody trusts: under bubblewrap, in namespaces of its own, with nothing to read, write or reach.

The one idea: the sandbox starts from an empty file system and gets, read-only, the system's libraries, the running
Python and copies of what it is told; the only place to write is a scratch of limited size in memory. It has no network,
no environment, no sight of other processes, and it is no user of this machine. Started by root it gives up root's
rights inside, after the binds are made, so that a Python below a closed home directory can be used. Without a working
sandbox nothing runs: `check` says what is missing and how to mend it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Protocol

from . import inside
from .interpreter import Interpreter, copy_allowed, this_python
from .limits import Group, Limits, Usage, make_group, without_group
from .watch import Watch

SHARED = "/run/kernel"  # the one folder shared with the host, for a kernel's sockets
FILES = "/run/sandbox"
CHECKS = "autograder.checks"  # what test cells import; holds no answers
_CONFIRMED: list[str] = []  # what is enforced, once that was proved
_PREFIX, _OLD = "autograder-", 3600  # of temporary folders; seconds


class SandboxError(Exception):
    """There is no working sandbox; the message says what is missing and how to mend it."""


@dataclass(frozen=True)
class Job:
    """What to run, and what it may see."""

    argv: Sequence[str]
    limits: Limits = field(default_factory=Limits)
    inputs: Path | None = None  # its plain files, except notebooks, are copied into the working folder
    allow: tuple[str, ...] = (CHECKS,)  # modules of local packages that may be imported
    hide: tuple[Path, ...] = ()  # needed only for what lies inside a system or Python folder
    shared: Path | None = None  # seen as SHARED, writable
    files: dict[str, str] = field(default_factory=dict)  # name -> text, seen read-only in FILES


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
        shared: Path | None,
        hold: int | None = None,
    ) -> None:
        self.process, self.folder, self.group, self.limits, self._hold = process, folder, group, limits, hold
        self._words: deque[bytes] = deque(maxlen=16)  # the end of what it wrote on standard error
        self._watch = Watch(process.pid, group, limits, self.kill, shared)
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
        if code in (-9, 137):
            return "it was killed"
        if code in (-24, 152):  # SIGXCPU
            return f"it was stopped because it used more than {self.limits.cpu_seconds} seconds of processor time"
        return f"it ended by itself, with exit status {code}"

    def words(self) -> str:
        """The last of what it wrote on standard error."""
        return b"".join(self._words).decode(errors="replace")[-4000:]

    def _read(self, stream: IO[bytes]) -> None:
        # Read always, keep little: a program that floods its standard error must neither block nor fill our memory.
        while block := os.read(stream.fileno(), 4096):
            self._words.append(block)


def start(job: Job, stdout: int = subprocess.DEVNULL) -> Sandbox:
    """Start the job in a sandbox of its own. Raises SandboxError if bubblewrap is missing or the job is impossible."""
    bwrap = find_bubblewrap()
    folder = temporary("job")
    group = None
    alive, hold = os.pipe()  # who holds the other end is alive; see inside.py
    try:
        outside = stranger() if os.geteuid() == 0 else None
        group = make_group(job.limits)
        furnish(folder, job, outside, alive)
        if job.shared is not None and outside is not None:
            os.chown(job.shared, outside, outside)
        command = [
            *enter(group.entries if group else []),
            bwrap,
            *arguments(job, folder, this_python(job.hide), own_user=outside is None),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            start_new_session=True,
            pass_fds=[alive],
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
    return Sandbox(process, folder, group, job.limits, job.shared, hold)


def check() -> list[str]:
    """Prove once in this process that a sandbox works; returns what is enforced. Raises SandboxError, with the cure."""
    if _CONFIRMED:
        return list(_CONFIRMED)
    sandbox = start(Job([sys.executable, "-I", "-S", "-c", "pass"], Limits(wall_seconds=60)))
    try:
        sandbox.process.wait(timeout=60)
        if code := sandbox.process.returncode:
            sandbox._reader.join(timeout=1)
            raise SandboxError(cure(sandbox.words(), code))
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


def arguments(
    job: Job,
    folder: Path,
    python: Interpreter,
    own_user: bool,
    program: Sequence[str] = (),
    more: Sequence[str] = (),
) -> list[str]:
    """bubblewrap's arguments: the file system as the job sees it, its namespaces, environment and first program.

    `program` stands in for the one that confines itself and becomes the job's; `more` are further arguments.
    """
    command = ["--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    if own_user:
        command += ["--unshare-user", "--uid", str(inside.USER), "--gid", str(inside.USER)]
    places = [*map(str, python.folders), *python.links, SHARED, FILES, "/etc/passwd"]
    # bubblewrap would make the folders above these for root alone.
    above = {str(parent) for place in places for parent in Path(place).parents if parent != Path("/")}
    for place in sorted(above):
        command += ["--dir", place]
    for path in python.folders:
        command += ["--ro-bind", str(path), str(path)]
    for place, target in python.links.items():
        command += ["--symlink", target, place]
    for path in python.hidden:
        if path.is_dir():
            command += ["--tmpfs", str(path), "--remount-ro", str(path)]
        else:
            command += ["--ro-bind", f"{folder}/empty", str(path)]
    space = ["--size", str(job.limits.scratch), "--tmpfs"]
    command += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", *space, "/dev/shm", "--remount-ro", "/dev"]
    command += [*space, inside.SCRATCH]
    if "/tmp" not in above:  # else it holds the environment and stays read-only; TMPDIR says where to write
        command += ["--symlink", f"{inside.SCRATCH}/tmp", "/tmp"]
    command += ["--ro-bind", f"{folder}/files", FILES]
    for name in ("passwd", "group", "hosts", "nsswitch.conf"):
        command += ["--ro-bind", f"{folder}/etc/{name}", f"/etc/{name}"]
    if job.shared is not None:
        command += ["--bind", str(job.shared), SHARED]
    command += [*more, "--remount-ro", "/", "--chdir", "/", "--clearenv"]
    for name, value in environment(job, python).items():
        command += ["--setenv", name, value]
    return [*command, "--", *(program or [python.executable, "-I", "-S", f"{FILES}/inside.py"])]


def environment(job: Job, python: Interpreter) -> dict[str, str]:
    """All of a job's environment variables."""
    return {
        "PATH": f"{Path(python.executable).parent}:/usr/bin:/bin",
        "HOME": inside.SCRATCH,
        "TMPDIR": f"{inside.SCRATCH}/tmp",
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        "PYTHONPATH": ":".join([f"{FILES}/lib", *map(str, python.path)]),
        "PYTHONHASHSEED": "0",  # the same submission scores the same twice
        "OMP_NUM_THREADS": "1",  # many sandboxes share the machine, and a thread counts as a process
        "OPENBLAS_NUM_THREADS": "1",
        "IPYTHONDIR": f"{inside.SCRATCH}/.ipython",
    }


def find_bubblewrap() -> str:
    """The path of `bwrap`. Raises SandboxError where there is none or there can be none."""
    if not sys.platform.startswith("linux"):
        raise SandboxError(
            f"learners' code runs only in a sandbox, and a sandbox needs Linux; this is {sys.platform}. Grade in a "
            "Linux container (macOS, Windows) or in WSL 2 (Windows): `python -m autograder doctor` says how"
        )
    if path := shutil.which("bwrap"):
        return path
    raise SandboxError(
        "learners' code runs only in a sandbox, and bubblewrap is missing. Install it: `apt install bubblewrap` "
        "(Debian, Ubuntu), `dnf install bubblewrap` (Fedora, RHEL), `pacman -S bubblewrap` (Arch)"
    )


def cure(words: str, code: int) -> str:
    """What to do about a sandbox that does not start, from what bubblewrap or the first program said."""
    said = (words.strip().splitlines() or [f"exit status {code}"])[-1]
    container = "`docker run --privileged` (see `python -m autograder doctor --elsewhere`)"
    if "proc" in said and "ount" in said:
        how = f"In a container, start it with {container}: its /proc is masked"
    elif "namespace" in said or "uid map" in said or "loopback" in said or "Operation not permitted" in said:
        how = (
            "The kernel refuses namespaces. As an ordinary user: `sysctl -w user.max_user_namespaces=10000`, on older "
            "Debian `sysctl -w kernel.unprivileged_userns_clone=1`, on Ubuntu 24.04 or newer "
            f"`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`. In a container: start it with {container}"
        )
    elif "Permission denied" in said:
        how = "The Python or a package is not readable for other users: `chmod -R a+rX` its folder"
    else:
        how = "`python -m autograder doctor` tries each part"
    return f"the sandbox does not work here ({said}). {how}"


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


@lru_cache(maxsize=1)
def _has_filter() -> bool:
    import platform

    return inside.seccomp_program(platform.machine()) is not None


def stranger() -> int:
    """A user number that belongs to no one: systemd keeps these for passing services."""
    return 61184 + os.getpid() % 4336


def enter(entries: list[Path]) -> list[str]:
    """The start of a command line that puts what follows into a control group before it runs."""
    if not entries:
        return []
    write = 'for f in $FILES; do echo $$ > "$f" || exit 126; done; unset FILES; exec "$@"'
    return ["/usr/bin/env", f"FILES={' '.join(map(str, entries))}", "/bin/sh", "-c", write, "sh"]


def furnish(folder: Path, job: Job, outside: int | None, alive: int | None = None) -> None:
    """Write what the sandbox is given: its orders, the files copied into it, and who is who."""
    files, etc = folder / "files", folder / "etc"
    (files / "lib").mkdir(parents=True)
    (files / "inputs").mkdir()
    etc.mkdir()
    (folder / "empty").touch()
    for name, text in {
        "passwd": f"root:x:0:0::/:/bin/false\nlearner:x:{inside.USER}:{inside.USER}::{inside.SCRATCH}:/bin/sh\n",
        "group": f"root:x:0:\nlearner:x:{inside.USER}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }.items():
        (etc / name).write_text(text)
    for name, text in job.files.items():
        (files / name).write_text(text)
    shutil.copyfile(inside.__file__, files / "inside.py")
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
    }
    if _counts_by_namespace():
        rlimits["RLIMIT_NPROC"] = limits.processes
    orders = {"alive": alive, "become": outside, "rlimits": rlimits, "argv": list(job.argv)}
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
