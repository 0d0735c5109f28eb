"""The first program in a sandbox, its process 1: it gives up its rights, then starts and watches the real program.

Run by bubblewrap with nothing but the standard library, before anything of a learner's. It reads its orders from
/run/sandbox/job.json: the user to become (when it starts as root), limits for each process, files to copy into the
scratch, and the program. A system-call filter refuses what no exercise needs: what has opened sandboxes before (new
namespaces, mounts, other processes' memory, BPF, io_uring, key rings, sockets to anything but this machine), and what
uses memory or counters of the machine that no limit of a process covers (memfd, System V memory, inotify).
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import select
import shutil
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypedDict

with suppress(ImportError):  # Windows has neither: there this file is imported, and never runs
    import fcntl
    import resource

ORDERS = "/run/sandbox/job.json"
INPUTS = "/run/sandbox/inputs"
SCRATCH = "/scratch"
USER = 1000  # who a learner's program is, seen from inside
FIRST_HANDED = 100  # number of the first open file that was handed over

_CLONE_NEWUSER = 0x1000_0000
_NAMESPACES = 0x7E02_0000  # every CLONE_NEW... flag that clone() takes
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _CAPABILITY_VERSION = 4, 24, 0x2008_0522
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97

# Numbers of the refused calls, from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).
_REFUSED = {
    "x86_64": {
        "ptrace": 101, "syslog": 103, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165, "umount2": 166,
        "swapon": 167, "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176, "quotactl": 179,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        "shmget": 29, "msgget": 68, "semget": 64, "inotify_init": 253, "inotify_init1": 294, "fanotify_init": 300,
        "memfd_create": 319, "mq_open": 240,
    },
    "aarch64": {
        "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89, "unshare": 97,
        "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142,
        "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
        "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
        "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
        "shmget": 194, "msgget": 186, "semget": 190, "inotify_init1": 26, "fanotify_init": 262,
        "memfd_create": 279, "mq_open": 180,
    },
}  # fmt: skip
# The same on every architecture: io_uring, and the newer calls that mount.
_REFUSED_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE3 = 435
_ARCHITECTURE = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink


class Orders(TypedDict):
    """What the sandbox is to run, and how; written by `contents.furnish`."""

    argv: list[str]
    rlimits: dict[str, int]  # name in `resource` -> limit of each process
    become: int | None  # the user outside that user USER stands for, if the sandbox starts as root
    handed: list[int]  # numbers of the open files to hand over
    alive: int | None  # a pipe that ends with the grader


def main() -> None:
    orders = read_orders()
    confine(orders)
    hand_over(orders["handed"])
    enter_scratch()
    supervise(orders["argv"], orders["alive"])


def read_orders() -> Orders:
    with open(ORDERS, encoding="utf-8") as file:
        orders: Orders = json.load(file)
    return orders


def stop_if_alone(alive: int | None) -> None:
    """End if the grader is gone already: bubblewrap ends with it only from the moment it has asked the kernel to."""
    if alive is not None:
        if select.select([alive], [], [], 0)[0]:  # nobody writes to it, so this is its end
            sys.exit("sandbox: the grader has gone")
        os.close(alive)


def confine(orders: Orders, mapped: Callable[[], bool] | None = None) -> None:
    """Give up for good what a learner's program must not have. `mapped` is for `become`."""
    os.umask(0o022)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the whole machine runs short, this goes first
    if orders["become"] is not None:
        become(orders["become"], mapped)
    restrict(orders["rlimits"])


def restrict(rlimits: dict[str, int]) -> None:
    """Set the limits of a process, and give up capabilities and system calls for good."""
    for name, value in rlimits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    drop_capabilities()
    refuse_system_calls()


def hand_over(numbers: list[int]) -> None:
    """Give the open files that were handed over their numbers inside, and close nothing else."""
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, FIRST_HANDED + len(numbers)) for number in numbers]
    for place, number in enumerate(moved, start=FIRST_HANDED):
        os.dup2(number, place)  # stays open over an exec
        os.close(number)


def supervise(argv: list[str], alive: int | None) -> NoReturn:
    """Be process 1 of the sandbox: start the program, bury orphans, and end with the program or with the grader.

    It has the limits and the filter of the program, and its memory cannot be opened from inside: it is not dumpable.
    Everything inside ends with it. The exit status is the program's, 128 more than the number of a signal.
    """
    set_dumpable(False)  # an exec makes the program dumpable again
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    program = os.fork()
    if program == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if alive is not None:
            os.close(alive)
        os.execvpe(argv[0], argv, os.environ)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(FIRST_HANDED, FIRST_HANDED + 100)
    while True:
        ready, _, _ = select.select([woken, *([] if alive is None else [alive])], [], [])
        if alive in ready:  # nobody writes to it, so this is its end
            os._exit(128 + signal.SIGKILL)
        os.read(woken, 4096)
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == program:
                code = os.waitstatus_to_exitcode(found[1])
                os._exit(code if code >= 0 else 128 - code)


def enter_scratch() -> None:
    os.makedirs(f"{SCRATCH}/tmp", exist_ok=True)
    shutil.copytree(INPUTS, f"{SCRATCH}/work", dirs_exist_ok=True, copy_function=shutil.copyfile)
    os.chdir(f"{SCRATCH}/work")


def become(outside: int, mapped: Callable[[], bool] | None = None) -> None:
    """Turn from root into `outside`, a user with no rights, in a user namespace where it is called USER.

    Only a process outside the new namespace may say who is who in it: `mapped` has that done, by default by a child.
    """
    os.chown(SCRATCH, outside, outside)
    os.setgroups([])
    mapped = mapped or _helper(outside)
    _call(_libc().unshare, _CLONE_NEWUSER)
    if not mapped():
        raise OSError("the user namespace of the sandbox could not be set up")
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)


def map_users(process: int, outside: int) -> bool:
    """In the user namespace of `process`, `outside` is called USER."""
    for kind in ("gid_map", "uid_map"):
        with open(f"/proc/{process}/{kind}", "w") as file:
            file.write(f"{USER} {outside} 1")
    return True


def _helper(outside: int) -> Callable[[], bool]:
    """A child that maps its parent's users when it is told to; what is returned tells it and waits."""
    parent, (ready, go) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        try:
            if os.read(ready, 1) and map_users(parent, outside):
                os._exit(0)
        finally:
            os._exit(1)
    os.close(ready)

    def mapped() -> bool:
        os.write(go, b"x")
        os.close(go)
        return os.waitpid(child, 0)[1] == 0

    return mapped


def drop_capabilities() -> None:
    """Also those inside the own user namespace; an exec would drop them too, but a forked kernel has none."""
    libc = _libc()
    zero = ctypes.c_ulong(0)
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), zero, zero, zero)  # fails for numbers not in use
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call(libc.capset, header, bytes(24))
    set_dumpable(True)  # a process that has changed its user is not, and then its own /proc/self belongs to root


def set_dumpable(yes: bool) -> None:
    """Whether processes of the same user may open this one's memory."""
    zero = ctypes.c_ulong(0)
    _call(_libc().prctl, _PR_SET_DUMPABLE, ctypes.c_ulong(yes), zero, zero, zero)


def refuse_system_calls() -> bool:
    """Load the filter for good; False where this architecture's numbers are not known."""
    program = seccomp_program(platform.machine())
    if program is None:
        return False

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    libc = _libc()
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    _call(libc.prctl, _PR_SET_NO_NEW_PRIVS, one, zero, zero, zero)
    loaded = Program(len(program) // 8, program)
    _call(libc.prctl, _PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(loaded), zero, zero)
    return True


def seccomp_program(machine: str) -> bytes | None:
    """The filter in the kernel's form (classic BPF, eight bytes an instruction); None for an unknown machine."""
    if machine not in _ARCHITECTURE:
        return None
    load, equal, at_least, bits, ret = 0x20, 0x15, 0x35, 0x45, 0x06
    number, architecture, argument = 0, 4, 16  # offsets in struct seccomp_data; the low half of the first argument

    code = [(load, 0, 0, architecture), (equal, 1, 0, _ARCHITECTURE[machine]), (ret, 0, 0, _KILL), (load, 0, 0, number)]
    if machine == "x86_64":  # the x32 calls have numbers of their own for the same things
        code += [(at_least, 0, 1, 0x4000_0000), (ret, 0, 0, _ERRNO | _ENOSYS)]
    for call in (*_REFUSED[machine].values(), *_REFUSED_EVERYWHERE.values()):
        code += [(equal, 0, 1, call), (ret, 0, 0, _ERRNO | _EPERM)]
    # clone3 hides its flags behind a pointer; told that there is none, the C library uses clone.
    code += [(equal, 0, 1, _CLONE3), (ret, 0, 0, _ERRNO | _ENOSYS)]
    code += [
        (equal, 0, 4, _CLONE[machine]),
        (load, 0, 0, argument),
        (bits, 0, 1, _NAMESPACES),
        (ret, 0, 0, _ERRNO | _EPERM),
        (ret, 0, 0, _ALLOW),
        (equal, 0, len(_FAMILIES) + 2, _SOCKET[machine]),
        (load, 0, 0, argument),
        *((equal, len(_FAMILIES) - i, 0, family) for i, family in enumerate(_FAMILIES)),
        (ret, 0, 0, _ERRNO | _EAFNOSUPPORT),
        (ret, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(function: object, *arguments: object) -> None:
    if function(*arguments) != 0:  # type: ignore[operator]
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print(f"sandbox: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(125)
