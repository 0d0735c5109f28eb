"""Control groups of version 2, played by a folder: what is written to limit a sandbox, and what is read of its use."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.sandbox import limits
from autograder.sandbox.limits import Limits, Usage

LIMITS = Limits(memory=2**30, processes=64)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where only version 2 is mounted, and this process is in /user.slice/grading."""
    mount = tmp_path / "cgroup"
    own = mount / "user.slice" / "grading"
    own.mkdir(parents=True)
    for folder in (mount, own.parent, own):
        (folder / "cgroup.procs").touch()
        (folder / "cgroup.subtree_control").touch()
    told = {
        "/proc/self/mountinfo": f"24 1 0:22 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate",
        "/proc/self/cgroup": "0::/user.slice/grading",
    }
    read = limits._text
    monkeypatch.setattr(limits, "_text", lambda path: told.get(str(path)) or read(path))
    return own


def test_a_group_is_made_below_the_own_one_with_limits_that_count_for_all_its_processes(tree: Path) -> None:
    group = limits.make_group(LIMITS)
    assert group is not None
    folder = group.folders["v2"]
    assert folder.parent == tree
    assert (tree / "cgroup.subtree_control").read_text() == "+memory +pids"
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {
        "memory.max": str(2**30),
        "memory.swap.max": "0",  # or the limit would be passed by swapping
        "memory.oom.group": "0",  # a child that is too large dies alone
        "pids.max": "64",
    }
    assert group.entries == [folder / "cgroup.procs"]
    assert group.enforced == ["memory (cgroup v2)", "processes (cgroup v2)"]
    assert group.limits_memory()
    assert group.limits_processes()


def test_use_is_read_from_the_group_and_its_peak_never_falls(tree: Path) -> None:
    group = limits.make_group(LIMITS)
    assert group is not None
    folder = group.folders["v2"]
    (folder / "memory.current").write_text("5000000\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n")
    (folder / "pids.events").write_text("max 3\n")
    assert group.usage() == Usage(2.5, 5_000_000, 5_000_000, 1, 3)
    (folder / "memory.current").write_text("1000000\n")
    assert group.usage().memory_peak == 5_000_000  # before Linux 5.19 there is no memory.peak
    (folder / "memory.peak").write_text("6000000\n")
    assert group.usage().memory_peak == 6_000_000


def test_all_of_a_group_is_killed_by_one_write(tree: Path) -> None:
    group = limits.make_group(LIMITS)
    assert group is not None
    group.kill()
    assert (group.folders["v2"] / "cgroup.kill").read_text() == "1"


def test_where_the_own_group_cannot_be_divided_the_one_above_is_tried(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def refuse(self: Path, *words: object, **more: object) -> None:
        if self.parent == tree:
            raise OSError("processes in a group that has groups below")
        make(self, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", refuse)
    group = limits.make_group(LIMITS)
    assert group is not None
    assert group.folders["v2"].parent == tree.parent


def test_where_a_limit_cannot_be_set_there_is_no_group_and_none_is_left_behind(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def refuse(self: Path, *words: object, **more: object) -> int:
        if self.name == "memory.max":
            raise OSError("no memory controller here")
        return write(self, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", refuse)
    assert limits.make_group(LIMITS) is None
    assert not list(tree.rglob("autograder-*"))
