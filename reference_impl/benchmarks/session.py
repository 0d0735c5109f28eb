"""One run from first to last: what machine it is, was it quiet, and where the result goes."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch

from reference_impl.benchmarks import machine, plot, report
from reference_impl.benchmarks.result import Result

QUIET = 0.5  # processes a core that already want to run: above it a machine counts as busy


def new_result(device: str, quick: bool = False, today: Callable[[], datetime.date] = datetime.date.today) -> Result:
    """A result without sections: what machine this is, and whether it was quiet before we began."""
    busy = machine.load_average()
    settings = {
        "quick": quick,
        "threads": torch.get_num_threads(),
        "load_average": busy,
        "quiet": busy is None or busy < QUIET * (os.cpu_count() or 1),
    }
    return Result(today().isoformat(), machine.hardware(device), machine.versions(), settings)


def finish(result: Result, folder: Path, say: Callable[[str], None], parts: Sequence[str] = ()) -> None:
    """Prints the report and writes JSON, with a plot beside it where matplotlib is there."""
    print(report.text(result))
    path = result.write(folder, parts)
    say(f"written: {path}")
    picture = path.with_suffix(".png")
    if find_spec("matplotlib") is not None and plot.plot(result, picture):
        say(f"written: {picture}")
