"""A failure of the machine is never a score: older grades stay, the exit status says so, the next run tries again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from klass import KINDS, PS, hand_in, make_class

from autograder.__main__ import main
from autograder.batch import batch
from autograder.commands.grade import Plan, grade_class, summary

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_class(tmp_path / "course")
    for student in ("ada", "bob"):
        hand_in(tmp_path / "course", student, KINDS[0])
    return tmp_path / "course"


def in_this_process(work: Any, pieces: Any, *_: Any) -> Any:
    return ((piece, work(piece)) for piece in pieces)


def full_disk(*_: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_without_a_sandbox_nobody_gets_a_score_and_the_exit_status_is_3(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["grade", PS, "--course", str(root)]) == 3
    said = capsys.readouterr()
    assert "ada          -      9        9  not graded: no sandbox works here: " in said.out
    assert said.err == "autograder: 2 not graded; the same command tries them again: ada, bob\n"
    assert [line.split(",")[7:10] for line in (root / f"{PS}.csv").read_text().splitlines()[1:]] == [["", "", ""]] * 2


@pytest.mark.slow
def test_older_grades_stay_and_the_next_run_tries_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = grade_class(root, PS, Plan(jobs=1), lambda text: None)
    assert [one.score for one in first.results] == [5, 5]
    with monkeypatch.context() as broken:
        broken.setattr(batch, "autograde", full_disk)
        broken.setattr(batch.pool, "run", in_this_process)  # workers may be forked from a process that knows no patch
        second = grade_class(root, PS, Plan(jobs=1, force=True), lambda text: None)
    assert [(one.score, one.ungraded) for one in second.results] == [
        (5, "grading failed: OSError: [Errno 28] No space left on device")
    ] * 2
    assert (
        "not graded: grading failed: OSError: [Errno 28] No space left on device; the earlier grade stands"
        in summary(second)
    )
    said: list[str] = []
    third = grade_class(root, PS, Plan(jobs=1), said.append)
    assert sum(line.startswith("autograde") for line in said) == 2
    assert [(one.score, one.ungraded) for one in third.results] == [(5, "")] * 2


@pytest.mark.parametrize("words", ["database or disk is full", "no sandbox"])
def test_what_nbgrader_could_not_do_is_no_score(root: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrader.apps import NbGraderAPI

    answer = {"success": False, "error": f"sqlite3.OperationalError: {words}", "log": ""}
    monkeypatch.setattr(NbGraderAPI, "autograde", lambda *_, **__: answer)
    result = batch.grade_one(batch.Task(root, PS, "ada"))
    assert result.ungraded == f"autograding failed: sqlite3.OperationalError: {words}"
    assert result.score is None


def test_a_worker_that_cannot_see_the_course_says_so_and_makes_no_folder(tmp_path: Path) -> None:
    result = batch.grade_one(batch.Task(tmp_path / "elsewhere", PS, "ada"))
    assert result.ungraded == f"{tmp_path / 'elsewhere' / 'nbgrader_config.py'} cannot be seen on this machine"
    assert not (tmp_path / "elsewhere").exists()
