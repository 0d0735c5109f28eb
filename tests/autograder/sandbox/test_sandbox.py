"""The sandbox from outside: what a program in it gets, what is told when it is stopped, and that it fails closed.

That each limit holds is tested in test_doctor.py. These tests need bubblewrap and fail, saying so, without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.commands import doctor
from autograder.course import kernelspec
from autograder.sandbox import bwrap, contents, entry, interpreter, launch, limits
from autograder.sandbox.launch import Job, SandboxError

SMALL = limits.Limits(memory=2**30, processes=64, wall_seconds=60, cpu_seconds=60)


def run(code: str, **job: object) -> tuple[str, str, str]:
    """What a Python program in a sandbox said, why it ended, and what it wrote on standard error."""
    job.setdefault("limits", SMALL)
    box = launch.start(Job([sys.executable, "-c", code], **job), stdout=subprocess.PIPE)  # type: ignore[arg-type]
    try:
        assert box.process.stdout is not None
        said = box.process.stdout.read(1_000_000).decode()
        box.process.wait()
        return said, box.reason(), box.words()
    finally:
        box.stop()


def test_a_program_works_in_a_copy_of_its_files_without_notebooks_or_links(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("1 2 3")
    (tmp_path / "ps.ipynb").write_text("hidden tests")
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    code = "import os; print(sorted(os.listdir()), open('data/numbers.txt').read()); open('data/numbers.txt', 'w')"
    said, reason, words = run(code, inputs=tmp_path)
    assert (said, reason, words) == ("['data'] 1 2 3\n", "", "")
    assert (tmp_path / "data" / "numbers.txt").read_text() == "1 2 3"


def test_it_works_where_the_environment_itself_lies_below_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    python = interpreter.this_python()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "package.txt").write_text("1 2 3")
        below = replace(python, folders=[*python.folders, Path(folder)])
        monkeypatch.setattr(launch, "this_python", lambda *hide: below)
        file = f"{folder}/package.txt"
        code = f"import tempfile; tempfile.TemporaryFile(); print(open({file!r}).read()); open('/tmp/mine', 'w')"
        said, reason, words = run(code)
        assert (said, reason) == ("1 2 3\n", "it ended by itself, with exit status 1")
        assert words.strip().endswith("OSError: [Errno 30] Read-only file system: '/tmp/mine'")


def test_too_large_inputs_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(2 * 10**6))
    with pytest.raises(SandboxError, match="larger than 1 MiB"):
        run("", inputs=tmp_path, limits=replace(SMALL, scratch=2**20))


def test_the_checks_are_importable_and_the_allowed_modules_and_no_other_of_the_courses() -> None:
    code = """
import importlib
names = "autograder.checks autograder.commands.grade reference_impl reference_impl.bounds.hardware interactives"
for name in names.split():
    try: importlib.import_module(name); print("yes", name)
    except ImportError: print("no", name)
"""
    said, _, words = run(code)
    assert said.split("\n")[:5] == [
        "yes autograder.checks", "no autograder.commands.grade", "no reference_impl",
        "no reference_impl.bounds.hardware", "no interactives",
    ], words  # fmt: skip
    said, _, words = run(code, allow=(contents.CHECKS, "reference_impl.bounds.hardware"))
    assert said.split("\n")[2:4] == ["yes reference_impl", "yes reference_impl.bounds.hardware"], words


def test_an_allowed_module_that_does_not_exist_is_named() -> None:
    with pytest.raises(SandboxError, match="'no_such_module' is not installed here"):
        run("", allow=("no_such_module",))


def test_an_installed_copy_of_the_course_is_hidden_as_well_as_an_editable_one(tmp_path: Path) -> None:
    for name, local in (("ours", True), ("theirs", False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{name}.pth,,\n{info.name}/METADATA,,\n../../bin/x,,\n")
        (tmp_path / f"{name}.pth").touch()
        (info / "direct_url.json").write_text('{"url": "file:///course", "dir_info": {}}' if local else "{}")
    hidden = {path.name for path in interpreter.local_files(tmp_path)}
    assert hidden == {"ours", "ours.pth", "ours-1.dist-info"}


def test_a_local_package_without_a_list_of_its_files_is_an_error_not_a_leak(tmp_path: Path) -> None:
    info = tmp_path / "ours-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: ours\nVersion: 1\n")
    (info / "direct_url.json").write_text('{"dir_info": {}}')
    with pytest.raises(RuntimeError, match=r"ours .* has no RECORD"):
        interpreter.local_files(tmp_path)


def test_each_end_has_its_reason_in_words() -> None:
    assert run("")[1] == ""
    assert run("import sys; sys.exit(3)")[1] == "it ended by itself, with exit status 3"
    assert run("import os; os.kill(os.getpid(), 9)")[1] == "it was killed"
    assert run("import time; time.sleep(60)", limits=replace(SMALL, wall_seconds=1))[1] == (
        "it was stopped because it ran for more than 1 seconds"
    )
    shared = "import mmap\nm = mmap.mmap(-1, 2**30)\nfor i in range(0, len(m), 4096): m[i] = 1"
    assert "memory" in run(shared, limits=replace(SMALL, memory=200 * 2**20))[1]


def test_a_flood_on_standard_error_is_read_and_not_kept() -> None:
    _, reason, words = run("import sys\nfor _ in range(200): sys.stderr.write('x' * 10**6)")
    assert reason == ""
    assert len(words) <= 4000


def test_what_was_used_is_told_after_the_end() -> None:
    box = launch.start(Job([sys.executable, "-c", "x = b'1' * 10**8\nwhile True: sum(range(10**5))"], SMALL))
    while box.usage().cpu_seconds < 0.5 or box.usage().memory_peak < 10**8:
        assert box.process.poll() is None
    used = box.stop()
    assert used.cpu_seconds >= 0.5
    assert 10**8 <= used.memory_peak < 3 * 10**8


def test_nothing_is_left_behind() -> None:
    box = launch.start(Job([sys.executable, "-c", "import os, time\nos.fork()\ntime.sleep(60)"], SMALL))
    group = box.group
    box.stop()
    assert not box.folder.exists()
    assert group is None or not any(folder.exists() for folder in group.folders.values())


def test_when_the_grader_is_killed_its_sandbox_dies_and_the_next_one_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import os, signal, sys; from autograder.sandbox import launch\n"
        "box = launch.start(launch.Job([sys.executable, '-c', 'import time; time.sleep(60)']))\n"
        "print(box.process.pid, box.folder, *(box.group.folders.values() if box.group else []), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    pid, folder, groups = said[0], Path(said[1]), [Path(word) for word in said[2:]]
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.02)  # a process that has ended has no command line
    monkeypatch.setattr(contents, "_OLD", -1)
    contents._sweep.cache_clear()
    run("")
    assert not folder.exists()
    deadline = time.monotonic() + 60  # a dead process stays in its group until the system has taken note of its end
    while any(group.exists() for group in groups) and time.monotonic() < deadline:
        limits._sweep.cache_clear()
        run("")
    assert not any(group.exists() for group in groups)


def test_a_kernel_that_died_says_why_and_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client.manager import KernelManager

    monkeypatch.setenv("JUPYTER_PATH", "")
    manager = KernelManager(kernel_name=kernelspec.ensure(tmp_path))
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        client.execute("import os; os._exit(7)")
        while manager.is_alive():
            time.sleep(0.02)
        assert manager.provisioner.reason() == "it ended by itself, with exit status 7"
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=60)
        assert client.execute("1", reply=True, timeout=30)["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_without_bubblewrap_nothing_runs_and_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match=r"bubblewrap is missing\. Install it: `apt install bubblewrap`"):
        launch.start(Job(["true"]))


def test_on_another_system_nothing_runs_and_the_message_says_where_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxError, match=r"needs Linux; this is darwin.*container"):
        launch.start(Job(["true"]))


def test_a_bubblewrap_that_the_kernel_refuses_is_an_error_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(launch, "_CONFIRMED", [])
    with pytest.raises(SandboxError, match=r"No permissions to create new namespace.*sysctl -w user.max_user_name"):
        launch.check()


def test_the_system_call_filter_is_well_formed_for_both_architectures() -> None:
    for machine in ("x86_64", "aarch64"):
        program = entry.seccomp_program(machine)
        assert program is not None
        instructions = [program[i : i + 8] for i in range(0, len(program), 8)]
        for at, (_, _, if_true, if_false, *_) in enumerate(instructions):  # every jump lands inside
            assert at + 1 + max(if_true, if_false) < len(instructions) or instructions[at][0] == 0x06
    assert entry.seccomp_program("unknown") is None


def test_each_call_that_the_filter_names_is_refused() -> None:
    machine = os.uname().machine
    calls = entry._REFUSED[machine] | entry._REFUSED_EVERYWHERE
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
new_user = 0x10000000 | 17  # and SIGCHLD, as fork() asks for
tried = [(name, call, 0) for name, call in {calls}.items()] + [("clone", {entry._CLONE[machine]}, new_user)]
for name, call, first in tried:
    if libc.syscall(call, first, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
        print(name)
"""
    assert run(code) == ("", "", "")


def test_there_is_no_terminal_to_push_keys_into() -> None:
    code = """
import fcntl
for name in ("/dev/tty", "/dev/console", "/dev/stdin"):
    for call in (0x5412, 0x541C):  # TIOCSTI, TIOCLINUX
        try:
            with open(name) as terminal:
                fcntl.ioctl(terminal, call, b"x")
            print(name, "took a key")
        except OSError:
            pass
"""
    assert run(code) == ("", "", "")


def test_no_open_folder_is_handed_in() -> None:
    code = """
import os, stat
for number in range(3, 256):
    try:
        kind = os.fstat(number).st_mode
    except OSError:
        continue
    if stat.S_ISDIR(kind):
        print(number)
"""
    assert run(code) == ("", "", "")


def test_no_mount_point_lies_in_a_folder_that_a_program_can_fill(tmp_path: Path) -> None:
    """Else a link in that folder could lead bubblewrap, which makes mount points as the grader, out of the sandbox."""
    job = Job([sys.executable, "-c", "pass"], SMALL, inputs=tmp_path)
    arguments = bwrap.arguments(job, tmp_path, interpreter.this_python(), own_user=True)
    made = [arguments[at + 2] for at, word in enumerate(arguments) if word in ("--ro-bind", "--bind", "--symlink")]
    made += [arguments[at + 1] for at, word in enumerate(arguments) if word in ("--tmpfs", "--dir")]
    assert contents.FILES in made
    filled = (f"{contents.FILES}/", f"{entry.SCRATCH}/", "/dev/shm/", "/tmp/")
    below_tmp = [str(folder) for folder in interpreter.this_python().folders if str(folder).startswith("/tmp/")]
    assert [place for place in made if place.startswith(filled) and place not in below_tmp] == []


def test_each_public_escape_names_tests_and_probes_that_exist() -> None:
    text = (Path(launch.__file__).parent / "README.md").read_text(encoding="utf-8").partition("## Public escapes")[2]
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) >= 10
    assert [name for name in sorted(named) if f"def {name}(" not in tests] == []
    probes = {probe.__name__ for probe in doctor.PROBES}
    assert set(re.findall(r"probe `(\w+)`", text)) - probes == set()


def test_it_works_for_an_ordinary_user_too() -> None:
    python = sys.executable if os.geteuid() else "/usr/bin/python3"
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode:
        pytest.skip("the system's Python, which another user may run, is older than 3.11")
    folder = tempfile.mkdtemp()
    try:
        os.chmod(folder, 0o755)
        package = Path(launch.__file__).parents[1]
        shutil.copytree(package, f"{folder}/autograder", ignore=shutil.ignore_patterns("__pycache__"))
        code = (
            "import os; from autograder.sandbox import launch\n"
            "from autograder.sandbox.probes import escapes\n"
            "assert os.geteuid(); print(launch.check())\n"
            "for p in escapes.PROBES: found = p(); assert found.held, found; print(found.name)"
        )
        drop = [] if os.geteuid() else ["setpriv", "--reuid=1005", "--regid=1005", "--clear-groups"]
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": folder, "HOME": "/"}
        done = subprocess.run([*drop, python, "-c", code], capture_output=True, text=True, env=environment)
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    assert "500 processes" in done.stdout


def test_the_kernelspec_names_the_sandbox_and_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    monkeypatch.setenv("JUPYTER_PATH", "/elsewhere")
    assert kernelspec.ensure(tmp_path, allow={"*": ["reference_impl.bounds.hardware"]}) == "sandboxed-python"
    kernelspec.ensure(tmp_path)
    assert os.environ["JUPYTER_PATH"] == f"{tmp_path / '.jupyter'}:/elsewhere"
    spec = KernelSpecManager().get_kernel_spec("sandboxed-python")
    assert spec.metadata["kernel_provisioner"]["provisioner_name"] == "sandbox-provisioner"
    assert spec.interrupt_mode == "message"
