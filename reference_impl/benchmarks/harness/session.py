"""One run from start to end: names the machine, checks that it is quiet, and writes the result."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch

from reference_impl.benchmarks.harness import machine, plot, report
from reference_impl.benchmarks.harness.result import Result

QUIET = 0.5  # processes a core that want to run; with more a machine counts as busy


def new_result(device: str, quick: bool = False, today: Callable[[], datetime.date] = datetime.date.today) -> Result:
    """A result without sections: which machine this is, and whether it was quiet before the run."""
    busy = machine.load_average()
    first = machine.real_time()
    settings = {
        "quick": quick,
        "threads": torch.get_num_threads(),
        "load_average": busy,
        "real_time": first,
        "quiet": first or busy is None or busy < QUIET * (os.cpu_count() or 1),
    }
    return Result(today().isoformat(), machine.hardware(device), machine.versions(), settings)


def join(results: Sequence[Result]) -> Result:
    """Joins the sections of several runs on one machine and day, with the same versions, into one result.

    ValueError if they do not belong together or two have the same section.
    """
    first = results[0]
    settings = dict(first.settings)
    sections = [section for result in results for section in result.sections]
    for result in results[1:]:
        same = (result.date, result.hardware, result.versions) == (first.date, first.hardware, first.versions)
        if not same or any(
            result.settings.get(key) != first.settings.get(key) for key in ("quick", "model", "threads")
        ):
            raise ValueError(
                f"runs of {first.date} and {result.date} do not belong together: machine, versions, settings"
            )
        settings["quiet"] = settings["quiet"] and result.settings["quiet"]
        settings["load_average"] = max(
            filter(None, (settings["load_average"], result.settings["load_average"])), default=None
        )
    names = [section.name for section in sections]
    if len(names) != len(set(names)):
        raise ValueError(f"two runs bring the same section: {', '.join(names)}")
    settings["runs"] = len(results)
    return Result(first.date, first.hardware, first.versions, settings, sections)


def finish(result: Result, folder: Path, say: Callable[[str], None], parts: Sequence[str] = ()) -> None:
    """Prints the report and writes JSON, with a plot beside it if matplotlib is installed."""
    print(report.text(result))
    path = result.write(folder, parts)
    say(f"written: {path}")
    picture = path.with_suffix(".png")
    if find_spec("matplotlib") is not None and plot.plot(result, picture):
        say(f"written: {picture}")
