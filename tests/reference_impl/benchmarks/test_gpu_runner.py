"""The GPU check loses nothing: rehearsed on a CPU with sections that raise, hang, crash and measure NaN."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reference_impl.benchmarks import GPU_SECTIONS
from reference_impl.benchmarks.__main__ import _parser
from reference_impl.benchmarks.gpu import runner
from reference_impl.benchmarks.gpu.runner import Planned
from reference_impl.benchmarks.harness import report
from reference_impl.benchmarks.harness.result import Result, Section, Target

# A section's process, as `section.main` starts it, with fakes for what would be measured on a GPU.
FAKE = """
import os, signal, sys, time
from pathlib import Path
from reference_impl.benchmarks.gpu.section import work
from reference_impl.benchmarks.harness.result import Result, Section, Target

name, path = sys.argv[1], Path(sys.argv[2])
if name == "old":
    sys.exit(2)
if name == "mute":
    sys.exit(3)

def measure(save):
    section = Section(name, name.title(), {"x": "x"}, [{"x": 1.0}])
    if name == "raises":
        raise RuntimeError("an illegal memory access\\nwas encountered")
    if name in ("hangs", "crashes", "is_killed"):
        save(section)  # the first row is measured
    if name == "hangs":
        os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
        time.sleep(60)
    if name == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "is_killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "nan":
        section.rows.append({"x": float("nan")})
        section.targets.append(Target("speed", float("-inf"), 1.0))
    return section

header = lambda: Result("2026-01-01", {"name": "A Card", "multiprocessors": 1}, {"torch": "1"}, {"model": "m"})
sys.exit(work(path, measure, header))
"""


def fake(name: str, path: Path) -> list[str]:
    return [sys.executable, "-c", FAKE, name, str(path)]


def rehearse(plan: list[Planned], folder: Path, budget: float = 500.0) -> tuple[Result, list[Result]]:
    """The final result, and the file as it was after each section."""
    files: list[Result] = []

    def write(merged: Result) -> None:
        path = merged.write(folder)
        files.append(Result.from_json(path.read_text(), str(path)))

    return runner.run(plan, budget, fake, write, lambda text: None), files


def test_a_section_that_raises_hangs_crashes_or_yields_nan_costs_only_itself(tmp_path: Path) -> None:
    names = ["raises", "first", "crashes", "is_killed", "nan", "mute", "hangs", "last"]
    # The limit of the section that hangs is the only one that is waited for.
    plan = [Planned(name, 8.0 if name == "hangs" else 60.0) for name in names]
    result, files = rehearse(plan, tmp_path)

    with_rows = ["first", "crashes", "is_killed", "nan", "hangs", "last"]
    for n, file in enumerate(files, 1):  # after each section the file holds all that was measured so far
        assert [section.name for section in file.sections] == [name for name in with_rows if name in names[:n]]
    assert files[-1] == result
    assert result.settings["failed"] == {
        "raises": "RuntimeError: an illegal memory access was encountered (<string>, line 16)",
        "crashes": "killed by SIGSEGV",
        "is_killed": "killed by SIGKILL",
        "mute": "ended with status 3",
        "hangs": "not finished in 8 s",
    }
    for name in ("first", "crashes", "is_killed", "hangs", "last"):
        assert result.section(name).rows == [{"x": 1.0}]
    assert result.hardware["name"] == "A Card"
    assert result.versions == {"torch": "1"}
    assert not runner.right(result)
    assert "FAILED crashes: killed by SIGSEGV" in report.text(result)

    nan = result.section("nan")
    assert nan.rows == [{"x": 1.0}, {"x": None}]
    assert nan.targets == [Target("speed", None, 1.0)]
    assert nan.notes == [
        "Not a finite number: 'x' in row 2 was nan.",
        "Not a finite number: the target 'speed' was -inf.",
    ]


def test_no_section_gets_more_than_what_is_left_of_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    limits: list[tuple[str, float]] = []

    def process(command: list[str], seconds: float) -> str | None:
        nonlocal now
        limits.append((command[0], seconds))
        now += 38.0  # each takes so long
        return None

    monkeypatch.setattr(runner, "run_process", process)
    plan = [Planned(name, 60.0) for name in "abcd"]
    result = runner.run(plan, 117.0, lambda name, path: [name], lambda merged: None, lambda text: None, lambda: now)
    assert limits == [("a", 60.0), ("b", 60.0), ("c", 41.0)]
    assert result.settings["failed"] == {"d": "not started: the budget of 117 s was used up"}
    assert result.settings["seconds"] == {"a": 38.0, "b": 38.0, "c": 38.0}


def test_a_refused_card_stops_the_run_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(runner.RefusedError):
        rehearse([Planned("old", 60.0), Planned("first", 60.0)], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_plan_begins_with_the_card_and_ends_with_prefill_within_the_default_budget() -> None:
    order = ["card", "correctness", "decode", "int8", "int4", "engine", "answers", "speculative", "tests", "prefill"]
    assert [planned.name for planned in runner.PLAN] == list(GPU_SECTIONS) == order
    assert runner.PLAN[1].seconds <= 60
    assert _parser().parse_args([]).budget == 540
    assert sum(planned.seconds for planned in runner.PLAN) <= 540 - 10  # so that no section is cut short by another


def test_the_runner_needs_no_torch() -> None:
    code = "import sys, reference_impl.benchmarks.gpu.runner; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def canned(failed: dict[str, str], met: bool) -> Result:
    checked = Section("gpu_correctness", "", {}, targets=[Target("error", 0.0 if met else 1.0, 0.5, at_least=False)])
    slow = Section("gpu_decode", "", {}, targets=[Target("share", 0.1, 0.85)])
    return Result("2026-01-01", {"name": "A Card"}, {}, {"failed": failed, "seconds": {}}, [checked, slow])


@pytest.mark.parametrize(
    ("failed", "met", "status"), [({}, True, 0), ({}, False, 1), ({"prefill": "killed by SIGSEGV"}, True, 1)]
)
def test_a_missed_speed_is_no_error_but_a_wrong_answer_or_a_failed_section_is(
    failed: dict[str, str],
    met: bool,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(runner, "run", lambda *arguments: canned(failed, met))
    assert runner.main(540, None, tmp_path) == status
    (path,) = tmp_path.glob("*.json")
    assert ("unfinished" in path.name) == bool(failed)  # a file of the same day is replaced by a whole run only
    assert json.loads(path.read_text())["settings"]["failed"] == failed
