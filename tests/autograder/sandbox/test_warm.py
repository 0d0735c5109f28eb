"""Warm kernels: forked, not started, and yet each in a sandbox as tight as a cold one."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.course import kernelspec
from autograder.sandbox import bwrap, launch, warm_kernels
from autograder.sandbox.launch import Job
from autograder.sandbox.limits import Limits
from autograder.sandbox.probes import attempt as probing
from autograder.sandbox.probes import escapes
from autograder.sandbox.probes.escapes import Finding

SMALL = Limits(memory=2**29, processes=64, wall_seconds=60, cpu_seconds=60)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="forking into new namespaces needs root; others start cold")


@pytest.fixture(scope="module")
def yard() -> Iterator[Path | None]:
    with warm_kernels.fork_server(("numpy",), hide=(Path(launch.__file__).parents[1],)) as place:
        yield place


def begin(code: str, limits: Limits = SMALL, **job: object) -> launch.Sandbox:
    box = warm_kernels.start(Job([sys.executable, "-c", code], limits, **job), stdout=subprocess.PIPE)  # type: ignore[arg-type]
    assert box is not None, "it would start cold"
    return box


def run(code: str, **words: object) -> tuple[str, str, str]:
    """What it said, why it ended, what it wrote on standard error."""
    box = begin(code, **words)  # type: ignore[arg-type]
    try:
        assert box.process.stdout is not None
        said = box.process.stdout.read().decode()
        box.process.wait()
        return said, box.reason(), box.words()
    finally:
        box.stop()


def test_what_was_imported_before_the_fork_is_there(yard: Path) -> None:
    assert (
        run("import sys; print('numpy' in sys.modules, 'autograder.sandbox.launch' in sys.modules)")[0]
        == "True False\n"
    )


def test_a_fork_has_no_rights_and_a_filter(yard: Path) -> None:
    code = """
import os
status = dict(line.split(":\\t") for line in open("/proc/self/status") if ":\\t" in line)
print([status[k].strip() for k in ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Uid", "Groups")])
processes = sorted(p for p in os.listdir("/proc") if p.isdigit())
print(os.listdir("/run/yard"), processes, len(os.listdir("/proc/self/fd")))
"""
    said, _, words = run(code)
    zero = "0" * 16
    rights, sees = said.splitlines() or [words, ""]
    assert rights == str([zero, zero, zero, "1", "2", "1000\t1000\t1000\t1000", ""])
    assert sees == "[] ['1', '2'] 4"  # three standard streams and the listing itself


@pytest.mark.parametrize("probe", escapes.PROBES, ids=lambda p: p.__name__)
def test_each_limit_holds_as_in_a_cold_sandbox(
    yard: Path, probe: Callable[[], Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def start(job: Job, stdout: int) -> launch.Sandbox:
        box = warm_kernels.start(job, stdout)
        assert box is not None
        started.append(box)
        return box

    monkeypatch.setattr(probing, "start", start)
    found = probe()
    assert started
    assert found.held, f"{found.name}: {found.what}"


def test_two_forks_at_once_do_not_see_each_other(yard: Path) -> None:
    first = begin("import os, time; open('mine', 'w'); print(os.getpid(), flush=True); time.sleep(30)")
    try:
        assert first.process.stdout is not None
        assert first.process.stdout.readline() == b"2\n"
        said = run("import os; print(os.listdir('.'), [p for p in os.listdir('/proc') if p.isdigit()])")[0]
        assert said == "[] ['1', '2']\n"
    finally:
        first.stop()


def test_random_numbers_differ_between_forks(yard: Path) -> None:
    code = "import numpy, random; print(numpy.random.random(), random.random())"
    assert run(code)[0].split() != run(code)[0].split()


def test_ends_are_told_and_the_next_fork_is_unharmed(yard: Path) -> None:
    assert run("raise SystemExit(3)")[1] == "it ended by itself, with exit status 3"
    assert run("import os; os._exit(4)")[1] == "it ended by itself, with exit status 4"
    assert run("import os; os.kill(os.getpid(), 9)")[1] == "it was killed"
    shared = "import mmap\nm = mmap.mmap(-1, 2**30)\nfor i in range(0, len(m), 4096): m[i] = 1"
    assert "memory" in run(shared)[1]
    assert run("print('well')") == ("well\n", "", "")


def test_killed_from_outside_it_takes_all_its_processes_along(yard: Path) -> None:
    box = begin("import os, time\nfor _ in range(3): os.fork()\nprint('up', flush=True); time.sleep(60)")
    assert box.process.stdout is not None
    box.process.stdout.readline()
    folders = list(box.group.folders.values()) if box.group else []
    box.stop()
    assert box.process.returncode == -9
    assert not any(folder.exists() for folder in folders)
    assert not box.folder.exists()


def test_a_kernel_is_ready_for_a_third_of_a_second_of_processor_time(
    yard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds on the clock depend on what else the machine does; the benchmark measures those."""
    from jupyter_client.manager import KernelManager

    monkeypatch.setenv("JUPYTER_PATH", "")
    name = kernelspec.ensure(tmp_path)
    used, took = [], []
    for _ in range(3):
        manager = KernelManager(kernel_name=name)
        start = time.monotonic()
        manager.start_kernel(cwd=str(tmp_path))
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.kernel_info(reply=True, timeout=30)
            took.append(time.monotonic() - start)
            assert client.execute("import numpy", reply=True, timeout=30)["content"]["status"] == "ok"
            used.append(manager.provisioner.usage().cpu_seconds)
            assert isinstance(manager.provisioner.box.process, warm_kernels.Fork)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    assert min(used) < 0.33, (used, took)


def test_where_it_would_not_be_the_same_sandbox_it_starts_cold(yard: Path) -> None:
    job = functools.partial(Job, [sys.executable, "-c", "pass"], SMALL)
    assert warm_kernels.start(Job(["/bin/true"], SMALL)) is None
    hide = Path(sys.prefix) / "lib"
    assert warm_kernels.start(job(hide=(hide,))) is None


def test_an_ordinary_user_gets_cold_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "check", lambda: [])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv(warm_kernels.VARIABLE, raising=False)
    with warm_kernels.fork_server() as place:
        assert place is None
        assert warm_kernels.start(Job([sys.executable, "-c", "pass"])) is None


def test_a_nursery_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_kernels, "_KERNEL_MODULES", ("no.such.module",))
    monkeypatch.setattr(bwrap, "arguments", lambda *_, **__: ["--no-such-option"])
    with pytest.raises(launch.SandboxError, match=r"did not start: .*no-such-option"), warm_kernels.fork_server(()):
        pass
