"""Time limits count what a submission uses, not what its neighbours do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_course import ANSWERS, FULL, Desk

from autograder.run import budget
from autograder.run.budget import Deadline
from autograder.sandbox.limits import Usage


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the clock and the counters say."""
    now = SimpleNamespace(wall=0.0, own=0.0, cpu=0.0, waited=0.0)
    monkeypatch.setattr(budget.time, "monotonic", lambda: now.wall)
    monkeypatch.setattr(budget, "waited_seconds", lambda: now.own)
    now.usage = lambda: Usage(cpu_seconds=now.cpu, waited_seconds=now.waited)
    return now


@pytest.mark.parametrize(
    ("wall", "cpu", "waited", "own", "spent"),
    [
        (10, 10, 0, 0, 10),  # a busy loop on a quiet machine
        (10, 0, 0, 0, 10),  # a cell that sleeps
        (60, 1.3, 58, 0, 2),  # the honest neighbour of a hundred busy processes
        (60, 1.3, 20, 38, 2),  # while the grading process waits for a processor too
        (30, 55, 2000, 0, 55),  # the hundred busy processes themselves
        (60, 0, 1000, 0, 2),  # a ceiling that no counter moves
    ],
)
def test_waiting_for_a_processor_costs_nothing(
    world: Any, wall: float, cpu: float, waited: float, own: float, spent: float
) -> None:
    deadline = Deadline(60, world.usage)
    world.wall, world.cpu, world.waited, world.own = wall, cpu, waited, own
    assert deadline.spent() == pytest.approx(spent)
    assert deadline.left() == pytest.approx(60 - spent)


@pytest.mark.parametrize(
    ("wall", "cpu", "waited", "starved"),
    [
        (1800, 1.3, 1790, True),  # a second of processor time in half an hour
        (1790, 1.3, 1780, False),  # the ceiling is not reached
        (60, 0, 0, False),  # a cell that sleeps ends by its own time
        (1800, 61, 1790, False),  # it has used its own time as well
    ],
)
def test_a_submission_starves_when_the_far_ceiling_ends_its_time_before_its_own(
    world: Any, wall: float, cpu: float, waited: float, starved: bool
) -> None:
    deadline = Deadline(60, world.usage)
    world.wall, world.cpu, world.waited = wall, cpu, waited
    assert deadline.starved() is starved


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Object of type")
@pytest.mark.parametrize("word", ["exit()", "quit"])
def test_a_cell_that_ends_its_kernel_costs_no_other_cell_a_point(
    tmp_path: Path, forked_kernels: None, word: str
) -> None:
    desk = Desk(tmp_path)

    def leave(named: dict[str, Any], notebook: Any) -> None:
        cell = {"cell_type": "code", "metadata": {}, "source": word, "outputs": [], "execution_count": None}
        notebook["cells"].insert(6, {**cell, "id": "leave"})

    desk.hand_in("leaves", ANSWERS, leave)
    assert desk.scores(desk.grade("leaves")) == FULL
    graded = desk.graded("leaves")
    said = [output["evalue"] for cell in graded["cells"] for output in cell.get("outputs", []) if "evalue" in output]
    assert said == ["the cell ended its kernel: it calls exit() or quit()"]
    assert len(graded["metadata"]["autograder"]["restarts"]) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Object of type")
def test_all_cells_together_keep_a_bounded_amount_of_output(tmp_path: Path, forked_kernels: None) -> None:
    desk = Desk(tmp_path)
    desk.api.config.SandboxedExecute.output_bytes = 100_000

    def chatter(named: dict[str, Any], notebook: Any) -> None:
        cell = {"cell_type": "code", "metadata": {}, "source": "print('x' * 50_000)", "outputs": []}
        notebook["cells"] += [{**cell, "execution_count": None, "id": f"loud-{number}"} for number in range(10)]

    desk.hand_in("loud", ANSWERS, chatter)
    assert desk.scores(desk.grade("loud")) == FULL
    loud = [cell for cell in desk.graded("loud")["cells"] if "print" in "".join(cell["source"])]
    assert sum(len("".join(output["text"])) for cell in loud for output in cell["outputs"]) < 101_000
    assert "50,001 bytes of output were cut here" in "".join(loud[-1]["outputs"][-1]["text"])
