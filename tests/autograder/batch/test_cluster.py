"""The same work on a Dask cluster of two workers on this machine's loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from klass import KINDS, PS, hand_in, make_class

from autograder.commands.grade import Plan, grade_class
from autograder.course.course import CourseError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


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
    with pytest.raises(CourseError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        grade_class(root, PS, Plan(scheduler="tcp://127.0.0.1:1"), lambda text: None)
