"""The same work on a Dask cluster of two workers on this machine's loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pieces
import pytest
from klass import KINDS, PS, hand_in, make_class
from pieces import Piece, done_in

from autograder.batch import cluster, pool
from autograder.commands.grade import Plan, grade_class
from autograder.course.course import InfrastructureError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


HELPERS = str(Path(pieces.__file__).parent)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, memory_limit=0
    ) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_gives_every_submission_the_score_that_it_deserves(scheduler: str, tmp_path: Path) -> None:
    root = tmp_path / "course"
    make_class(root)
    kinds = [kind for kind in KINDS if kind.name in ("right", "half", "not-json", "dies", "raises", "renamed")]
    members = {f"s{number}": kind for number, kind in enumerate(kinds)}
    for student, kind in members.items():
        hand_in(root, student, kind)
    said: list[str] = []
    graded = grade_class(root, PS, Plan(scheduler=scheduler), said.append)
    assert {one.student: one.score for one in graded.results} == {name: kind.score for name, kind in members.items()}
    assert sum(line.startswith("autograde") for line in said) == 6
    assert "it is not JSON" in next(one.problem for one in graded.results if members[one.student].name == "not-json")
    said.clear()
    grade_class(root, PS, Plan(scheduler=scheduler), said.append)
    assert said == [], "what is done is not done again"


def test_an_address_where_no_scheduler_listens_is_named(tmp_path: Path) -> None:
    root = tmp_path / "course"
    make_class(root)
    hand_in(root, "ada", KINDS[0])
    with pytest.raises(InfrastructureError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        grade_class(root, PS, Plan(scheduler="tcp://127.0.0.1:1"), lambda text: None)


def worker(scheduler: str, cwd: Path, **environment: str) -> subprocess.Popen[bytes]:
    words = ["dask", "worker", scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"]
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": HELPERS, **environment},
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Any]:
    """A scheduler that has no worker yet, and a course's folder."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=0, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, memory_limit=0
    ) as started:
        yield started


def wait_for(started: Any, count: int) -> None:
    from distributed import Client

    with Client(started.scheduler_address) as client:
        client.wait_for_workers(count, timeout=120)


def test_a_worker_without_bubblewrap_is_left_out_by_name_and_gets_no_piece(empty: Any, tmp_path: Path) -> None:
    good = worker(empty.scheduler_address, tmp_path)
    bad = worker(empty.scheduler_address, tmp_path, PATH="/nowhere")
    try:
        wait_for(empty, 2)
        said: list[str] = []
        pieces = [Piece(tmp_path, number) for number in range(6)]
        done = dict(cluster.run(done_in, pieces, empty.scheduler_address, said.append))
    finally:
        for one in (good, bad):
            one.kill()
            one.wait()
    assert set(done) == set(pieces)
    assert set(done.values()) == {good.pid}
    (line,) = said
    assert line.startswith("worker tcp://127.0.0.1:")
    assert "is left out: no sandbox works there: " in line
    assert "bubblewrap" in line


def test_a_worker_with_another_version_or_without_the_folder_says_so(tmp_path: Path) -> None:
    sign = tmp_path / "course" / ".autograder" / "seen"
    same = cluster.versions()
    assert cluster.cannot_grade(sign, "x", {**same, "nbgrader": "0.1"}).startswith(
        "it has other versions: nbgrader 0.9"
    )
    assert cluster.cannot_grade(sign, "x", same) == (
        f"it cannot see or write the course's folder {tmp_path / 'course'}: No such file or directory"
    )
    sign.parent.mkdir(parents=True)
    sign.write_text("of another course")
    assert cluster.cannot_grade(sign, "x", same) == f"its folder {tmp_path / 'course'} is not the course's"


def test_without_a_worker_that_can_grade_nothing_begins(empty: Any, tmp_path: Path) -> None:
    bad = worker(empty.scheduler_address, tmp_path, PATH="/nowhere")
    try:
        wait_for(empty, 1)
        with pytest.raises(InfrastructureError, match=r"no worker of the cluster can grade: tcp://.*no sandbox works"):
            list(cluster.run(done_in, [Piece(tmp_path, 1)], empty.scheduler_address, lambda text: None))
    finally:
        bad.kill()
        bad.wait()


def test_when_all_workers_are_lost_what_is_left_is_given_up_with_the_reason(
    empty: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    only = worker(empty.scheduler_address, tmp_path)
    said: list[str] = []
    found: dict[Piece, Any] = {}
    try:
        wait_for(empty, 1)
        for piece, result in cluster.run(
            done_in, [Piece(tmp_path, number) for number in range(5)], empty.scheduler_address, said.append
        ):
            only.kill()
            found[piece] = result
    finally:
        only.kill()
        only.wait()
    lost = [result for result in found.values() if isinstance(result, pool.Lost)]
    assert len(found) == 5
    assert lost
    assert {one.reason for one in lost} == {"no worker of the cluster is left that can grade (waited 1 seconds)"}
    assert said == [f"{lost[0].reason}; {len(lost)} submissions are not graded"]
