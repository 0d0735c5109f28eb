"""A batch that is killed or interrupted goes on where it stopped; two assignments at once do not mix."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from klass import KINDS, PS, ROOT, Kind, answer, environment, hand_in, make_class

from autograder.commands.grade import Plan, grade_class

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]

QUICK = [kind for kind in KINDS if kind.name in ("right", "half", "wrong", "not-json", "renamed", "raises")]


# Holds the batch up for some seconds of no processor time, so that it can be stopped before its end.
SLEEPS = Kind("sleeps", answer("import time\n\n\ndef double(x):\n    time.sleep(60)"), 0)


def _class(root: Path, count: int, *assignments: str) -> dict[str, Kind]:
    make_class(root, *assignments)
    members = {f"s{number:02}": QUICK[number % len(QUICK)] for number in range(count)}
    for assignment in assignments:
        for student, kind in members.items():
            hand_in(root, student, kind, assignment)
    return members


def _start(root: Path, assignment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", assignment, "--course", str(root), "--jobs", "2"],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _until(process: subprocess.Popen[str], count: int) -> list[str]:
    """Lines that it says until so many submissions are done."""
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if sum(one.startswith("autograde") for one in said) == count:
            break
    return said


def _recorded(root: Path, assignment: str = PS) -> set[str]:
    return {path.stem for path in (root / ".autograder" / "graded" / assignment).glob("*.json")}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_batch_that_is_stopped_in_the_middle_goes_on_with_what_is_missing(
    tmp_path: Path, how: signal.Signals
) -> None:
    root = tmp_path / "course"
    members = _class(root, 4, PS)
    for student in ("t1", "t2", "t3"):
        members[student] = SLEEPS
        hand_in(root, student, SLEEPS)
    process = _start(root, PS)
    _until(process, 1)
    below = _below(process.pid)
    assert len(below) >= 2
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert errors.strip() == "autograder: interrupted; the same command goes on where it stopped"
    _end(below)
    done = _recorded(root)
    assert 1 <= len(done) < 7
    said: list[str] = []
    graded = grade_class(root, PS, Plan(jobs=2), said.append)
    assert sum(line.startswith("autograde") for line in said) == 7 - len(done)
    assert {one.student: one.score for one in graded.results} == {name: kind.score for name, kind in members.items()}


def _end(below: set[tuple[int, str]]) -> None:
    """The workers, the kernels and their servers end with the batch, also where it was killed."""
    deadline = time.monotonic() + 60
    while (left := [process for process in below if _runs(*process)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left


def test_two_assignments_graded_at_once_in_one_course_do_not_mix(tmp_path: Path) -> None:
    root = tmp_path / "course"
    members = _class(root, 4, "ps", "other")
    both = {name: _start(root, name) for name in ("ps", "other")}
    for name, process in both.items():
        said, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert f"{name}.csv" in said
        graded = [
            json.loads(path.read_text())["result"] for path in (root / f".autograder/graded/{name}").glob("*.json")
        ]
        assert {one["student"]: one["score"] for one in graded} == {who: kind.score for who, kind in members.items()}
        assert all((root / "autograded" / who / name / f"{name}.ipynb").is_file() for who in members)
    assert _recorded(root, "ps") == _recorded(root, "other") == set(members)


def _below(root: int) -> set[tuple[int, str]]:
    """All processes that this one has started, and they in turn, each with the time at which it began."""
    about = {int(entry): fields for entry in os.listdir("/proc") if entry.isdigit() and (fields := _about(int(entry)))}
    found = {root}
    while more := {pid for pid, fields in about.items() if int(fields[1]) in found} - found:
        found |= more
    return {(pid, about[pid][19]) for pid in found - {root}}


def _runs(pid: int, began: str) -> bool:
    """Whether that very process runs: its number may belong to another one by now."""
    fields = _about(pid)
    return bool(fields) and fields[0] != "Z" and fields[19] == began


def _about(pid: int) -> list[str]:
    """What /proc/PID/stat says after the name: state, parent, ... and in place 19 when it began."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
