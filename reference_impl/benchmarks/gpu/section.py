"""Measures one section of the GPU check, and keeps what was measured in a file, whatever happens next.

The runner starts this as a process. The file is a result with this one section. It is replaced as a whole for each new
row, so a later crash or hang loses none of them.

    python -m reference_impl.benchmarks.gpu.section NAME FILE
"""

from __future__ import annotations

import datetime
import sys
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from reference_impl.benchmarks.harness.result import Result, Save, Section, finite
from reference_impl.common import cli

REFUSED = 2  # the exit status that refuses the card

Measure = Callable[[Save], Section]  # calls the argument whenever it has measured more


def main(arguments: list[str]) -> int:
    """Measures the section of this name and writes its result to this file."""
    name, path = arguments
    if name == "card" and (reason := _refusal()) is not None:
        print(f"gpu-check: {reason}", file=sys.stderr)
        return REFUSED

    def measure(save: Save) -> Section:
        from reference_impl.benchmarks.gpu.sections import measure_section

        return measure_section(name, save)

    return work(Path(path), measure, _header)


def work(path: Path, measure: Measure, header: Callable[[], Result]) -> int:
    """Measures, and leaves in `path` everything that was measured and, after an error, the reason (status 1)."""
    result = Result(datetime.date.today().isoformat(), {}, {}, {})

    def save(section: Section) -> None:
        result.sections = [finite(section)]
        result.write_to(path)

    try:
        result = header()
        save(measure(save))
    except Exception as error:
        traceback.print_exc()
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        result.settings["failed"] = f"{type(error).__name__}: {cli.one_line(error)} ({where})"
        result.write_to(path)
        return 1
    return 0


def _header() -> Result:
    from reference_impl.benchmarks.gpu.card import choose_model
    from reference_impl.benchmarks.harness.session import new_result

    result = new_result("cuda")
    result.settings["model"] = choose_model(result.hardware["memory_bytes"]).name
    return result


def _refusal() -> str | None:
    """Why nothing can be checked here, in one line; None if it can."""
    if find_spec("torch") is None:
        return f"the check needs PyTorch, which is not installed for {sys.executable}"
    from reference_impl.benchmarks.gpu.card import refusal

    if (reason := refusal()) is not None:
        return reason
    if find_spec("triton") is None:
        return f"the check needs Triton, which is not installed for {sys.executable}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
