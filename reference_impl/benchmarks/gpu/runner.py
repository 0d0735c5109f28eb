"""Runs the sections of the GPU check, each in a process of its own, and keeps what every one of them measured.

A first run on a GPU meets errors that no CPU shows: a kernel that reads a wrong address, a hang, a number that is not
finite. Such an error costs only its own section. A section writes its rows to a file of its own as it measures them.
However its process ends, the rows are merged into one result, which is written before the next section starts. This
process never imports torch, so no error of the driver can reach it.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reference_impl.benchmarks.gpu.section import REFUSED
from reference_impl.benchmarks.harness import plot, report
from reference_impl.benchmarks.harness.result import Result
from reference_impl.common.clock import Clock

ROOT = Path(__file__).resolve().parents[3]
LEAST = 5.0  # seconds; a section with fewer left is not started
MUST_HOLD = ("gpu_correctness", "gpu_answers", "gpu_tests")  # their targets say whether the engine is right

Command = Callable[[str, Path], Sequence[str]]  # (section, its result file) -> the command that measures it


@dataclass(frozen=True)
class Planned:
    """A section and the most seconds that it may take."""

    name: str
    seconds: float


# Correctness comes before speed, and the least certain figures come first: prefill is mostly cuBLAS. The limits add up
# to less than the default budget, so a section that hangs takes no time from a later one.
PLAN = (
    Planned("card", 30),
    Planned("correctness", 60),
    Planned("decode", 80),
    Planned("int8", 65),
    Planned("int4", 65),
    Planned("engine", 50),
    Planned("answers", 30),
    Planned("speculative", 70),
    Planned("tests", 45),
    Planned("prefill", 35),
)


class RefusedError(Exception):
    """The first section's process has refused the card, and said why."""


def main(budget: float, only: Sequence[str] | None, output: Path | None) -> int:
    """Status 0 if all is right, 1 if a check or a section failed, 2 without a usable card (one line says why)."""
    plan = [planned for planned in PLAN if not only or planned.name in (*only, "card")]
    folder = output or Path(os.environ.get("OUT") or Path(__file__).parents[1] / "results")
    unfinished = [*(only or ()), "unfinished", time.strftime("%H%M%S")]  # replaces no earlier file
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", file=sys.stderr, flush=True)

    try:
        result = run(plan, budget, process_command, lambda merged: merged.write(folder, unfinished), say)
    except RefusedError:
        return 2
    path = result.write(folder, unfinished)
    if not result.settings["failed"]:
        whole = result.write(folder, only or ())
        path.unlink()
        path = whole
    print(report.text(result))
    say(f"written: {path}")
    _draw(result, path.with_suffix(".png"), say)
    return 0 if right(result) else 1


def process_command(name: str, path: Path) -> list[str]:
    """The command that measures a section of the GPU check."""
    return [sys.executable, "-X", "faulthandler", "-m", "reference_impl.benchmarks.gpu.section", name, str(path)]


def right(result: Result) -> bool:
    """Whether every section ended, and everything that must hold did. A missed speed is a finding, not an error."""
    checked = [target for section in result.sections if section.name in MUST_HOLD for target in section.targets]
    return not result.settings["failed"] and all(target.met for target in checked)


def run(
    plan: Sequence[Planned],
    budget: float,
    command: Command,
    write: Callable[[Result], object],
    say: Callable[[str], None],
    clock: Clock = time.monotonic,
) -> Result:
    """Runs the sections in order within `budget` seconds and returns what they measured.

    `write` gets the merged result after each section. `settings["failed"]` holds the reason for every section that did
    not end well, `settings["seconds"]` the time that each one took. RefusedError if a section's process refuses the
    card.
    """
    started = clock()
    merged = Result(datetime.date.today().isoformat(), {"name": "unknown GPU"}, {}, {"failed": {}, "seconds": {}})
    failed, seconds = merged.settings["failed"], merged.settings["seconds"]
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        for planned in plan:
            begun = clock()
            limit = min(planned.seconds, budget - (begun - started))
            if limit < LEAST:
                failed[planned.name] = f"not started: the budget of {budget:g} s was used up"
            else:
                path = Path(folder) / f"{planned.name}.json"
                reason = run_process(command(planned.name, path), limit)
                reason = _merge(merged, path) or reason
                seconds[planned.name] = round(clock() - begun, 1)
                if reason is not None:
                    failed[planned.name] = reason
            say(f"{planned.name}: {failed.get(planned.name, 'done')}")
            write(merged)
    return merged


def run_process(command: Sequence[str], seconds: float) -> str | None:
    """Runs a command and returns why it failed, or None. After `seconds` it is killed with all that it started.

    RefusedError for the exit status by which a section refuses the card.
    """
    process = subprocess.Popen(command, cwd=ROOT, stdout=sys.stderr, start_new_session=True)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"not finished in {seconds:.0f} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # a process inside the driver may not end even when it is killed
    if status == REFUSED:
        raise RefusedError
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"ended with status {status}" if status else None


def _merge(merged: Result, path: Path) -> str | None:
    """Adds a section's file to the result. Returns why the section failed, if the file or its absence says so."""
    if not path.exists():
        return None
    try:
        found = Result.from_json(path.read_text(), path.name)
    except ValueError as error:
        return str(error)
    if "multiprocessors" in found.hardware:
        merged.hardware, merged.versions = found.hardware, found.versions
    reason = found.settings.pop("failed", None)
    merged.settings |= {key: value for key, value in found.settings.items() if key not in merged.settings}
    merged.sections += found.sections
    return reason


def _draw(result: Result, path: Path, say: Callable[[str], None]) -> None:
    if find_spec("matplotlib") is None:
        return
    try:
        if plot.plot(result, path):
            say(f"written: {path}")
    except Exception as error:  # the numbers are safe already
        say(f"no plot: {type(error).__name__}: {error}")
