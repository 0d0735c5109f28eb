"""A run that the machine starved or killed is repeated once, alone, and never scored."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_course import ANSWERS, FULL, TINY, Desk

from autograder.run.budget import Deadline
from autograder.run.learner import Learner
from autograder.run.remote.grader import Grader
from autograder.run.slot import slot

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Object of type"),
    pytest.mark.usefixtures("forked_kernels"),
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.hand_in("ada", ANSWERS)
    return desk


def once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, what: Callable[[Any], None]) -> None:
    """At the third call of a method, do this first."""
    method, calls = getattr(owner, name), []

    def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == 3:
            what(self)
        return method(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, replaced)


def kill_the_kernel(learner: Learner) -> None:
    process = learner._manager.provisioner.box.process
    process.kill()
    process.wait()


def kill_the_tests(grader: Grader) -> None:
    assert grader._process is not None
    signal.pidfd_send_signal(grader._process._handle, signal.SIGKILL)


@pytest.mark.parametrize(
    ("owner", "kill", "words"),
    [
        (Learner, kill_the_kernel, "the kernel was killed in cell "),
        (Grader, kill_the_tests, "the process that runs the tests was killed"),
    ],
)
def test_a_run_of_which_something_kills_a_part_is_repeated_and_keeps_full_marks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, owner: type, kill: Any, words: str
) -> None:
    monkeypatch.setattr(Deadline, "starved", lambda _: False)  # however busy this machine is
    once(monkeypatch, owner, "run", kill)
    assert desk.scores(desk.grade("ada")) == FULL
    about = desk.graded("ada")["metadata"]["autograder"]
    assert about["repeated"].startswith(words)
    assert about["restarts"] == []


def test_a_starved_run_is_repeated_alone_and_keeps_full_marks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(Deadline, "starved", lambda _: next(answers, False))
    assert desk.scores(desk.grade("ada")) == FULL
    assert "got too little of a processor" in desk.graded("ada")["metadata"]["autograder"]["repeated"]


def test_a_run_that_starves_again_is_no_score_and_leaves_the_earlier_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = desk.grade("ada")
    monkeypatch.setattr(Deadline, "starved", lambda _: True)
    second = desk.grade("ada")
    assert (second.score, second.cells) == (None, [])
    assert "InterruptedRunError: cell setup got too little of a processor to be judged" in second.ungraded
    with desk.api.gradebook as gradebook:
        assert gradebook.find_submission(TINY, "ada").score == first.score


def test_a_notebook_that_kills_its_own_kernel_is_scored_by_its_second_run(desk: Desk) -> None:
    kills = ANSWERS["norm"].replace("\n", "\n    import os\n    os.kill(os.getpid(), 9)\n", 1)
    desk.hand_in("ada", {**ANSWERS, "norm": kills})
    result = desk.grade("ada")
    assert desk.scores(result) == {**FULL, "test-norm": 0}
    assert desk.reasons(result)["test-norm"] == "NoAnswer: norm: the kernel was lost: it was killed"


def test_a_run_that_wants_to_be_alone_waits_for_the_others_and_lets_nobody_pass(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def run(name: bytes, alone: bool) -> int:
        child = os.fork()
        if child == 0:
            with slot(tmp_path, alone):
                os.write(writing, name)
                time.sleep(0.2)
                os.write(writing, name.lower())
            os._exit(0)
        return child

    with slot(tmp_path), slot(tmp_path):  # two beside each other
        children = [run(b"A", alone=True)]
        time.sleep(0.5)
        children.append(run(b"B", alone=False))
        time.sleep(0.5)
        os.set_blocking(reading, False)
        with pytest.raises(BlockingIOError):
            os.read(reading, 1)
    for child in children:
        os.waitpid(child, 0)
    assert os.read(reading, 4) == b"AaBb"
