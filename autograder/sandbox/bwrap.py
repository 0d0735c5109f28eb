"""bubblewrap's command line: the file system, namespaces, environment and first program of a sandbox.

The file system starts empty. The system's libraries and the running Python are seen read-only; the only place to write
is a scratch of limited size in memory.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.sandbox import entry
from autograder.sandbox.contents import FILES, Job
from autograder.sandbox.interpreter import Interpreter


class SandboxError(Exception):
    """There is no working sandbox; the message says what is missing and how to mend it."""


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
        command += ["--unshare-user", "--uid", str(entry.USER), "--gid", str(entry.USER)]
    places = [*map(str, python.folders), *python.links, FILES, "/etc/passwd"]
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
    command += [*space, entry.SCRATCH]
    if "/tmp" not in above:  # else it holds the environment and stays read-only; TMPDIR says where to write
        command += ["--symlink", f"{entry.SCRATCH}/tmp", "/tmp"]
    command += ["--ro-bind", f"{folder}/files", FILES]
    for name in ("passwd", "group", "hosts", "nsswitch.conf"):
        command += ["--ro-bind", f"{folder}/etc/{name}", f"/etc/{name}"]
    command += [*more, "--remount-ro", "/", "--chdir", "/", "--clearenv"]
    for name, value in environment(job, python).items():
        command += ["--setenv", name, value]
    if program:
        return [*command, "--", *program]
    # bubblewrap's own process 1 would run without the filter and the limits; entry.py is process 1 in its place.
    return [*command, "--as-pid-1", "--", python.executable, "-I", "-S", f"{FILES}/entry.py"]


def environment(job: Job, python: Interpreter) -> dict[str, str]:
    """All of a job's environment variables."""
    return {
        "PATH": f"{Path(python.executable).parent}:/usr/bin:/bin",
        "HOME": entry.SCRATCH,
        "TMPDIR": f"{entry.SCRATCH}/tmp",
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        "PYTHONPATH": ":".join([f"{FILES}/lib", *map(str, python.path)]),
        "PYTHONHASHSEED": "0",  # the same submission scores the same twice
        "OMP_NUM_THREADS": "1",  # many sandboxes share the machine, and a thread counts as a process
        "OPENBLAS_NUM_THREADS": "1",
        "IPYTHONDIR": f"{entry.SCRATCH}/.ipython",
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


def enter(entries: list[Path]) -> list[str]:
    """The start of a command line that puts what follows into a control group before it runs."""
    if not entries:
        return []
    write = 'for f in $FILES; do echo $$ > "$f" || exit 126; done; unset FILES; exec "$@"'
    return ["/usr/bin/env", f"FILES={' '.join(map(str, entries))}", "/bin/sh", "-c", write, "sh"]
