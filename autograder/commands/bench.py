"""How fast a class is graded, beside plain nbgrader on the same submissions in the same run: `make bench-grading`.

Plain means `nbgrader autograde ASSIGNMENT` as it comes: one process, one kernel after another, no sandbox, tests in the
learner's kernel. Ours is `python -m autograder grade` with the sandbox on. Half of the plain submissions are graded
before ours and half after, so that a machine that grows busier or quieter favours neither.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autograder.batch.batch import STATE
from autograder.course import CONFIG
from autograder.course.course import Course, demand, open_nbgrader
from autograder.intake.collect import original
from autograder.proof import release
from autograder.sandbox import warm_kernels

# Patience with a busy machine is all that is set.
_PLAIN = "c = get_config()\nc.CourseDirectory.course_id = 'bench'\nc.Execute.iopub_timeout = 60\n"
_IMPORTS = "import numpy as np\nimport torch\n\nprint(torch.ones(2) + torch.from_numpy(np.ones(2, dtype=np.float32)))"


@dataclass
class Report:
    """Rates are submissions a minute, times seconds, memory bytes."""

    assignment: str
    submissions: int
    jobs: int
    cores: int
    python: str
    load: list[float]
    plain_submissions: int = 0
    plain_rate: float = 0.0
    rate: float = 0.0
    ratio: float = 0.0
    rate_with_feedback: float | None = None
    ready_warm: float | None = None
    ready_cold: float | None = None
    memory_first: int = 0
    memory_last: int = 0
    memory_per_submission: float = 0.0
    cpu_per_submission: float = 0.0
    wrong_scores: list[str] = field(default_factory=list)


def main(words: list[str] | None = None) -> int:
    """Measure, print, and write the numbers as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder.commands.bench", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--course", type=Path, default=Path("exercises"))
    parser.add_argument("--assignment", default="ps3_quantization")
    parser.add_argument("--submissions", type=int, default=100)
    parser.add_argument("--plain", type=int, default=20, help="submissions that plain nbgrader grades")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="10 submissions, 2 of them plain; without feedback pages")
    parser.add_argument(
        "--memory", type=int, default=0, metavar="N", help="only: does a process grow over N submissions?"
    )
    parser.add_argument("--output", type=Path, default=Path("build") / "bench-grading.json")
    options = parser.parse_args(words)
    if options.memory:
        from autograder.commands import bench_memory

        print(bench_memory.table(bench_memory.measure(options.course, options.memory, options.jobs)))
        return 0
    if options.quick:
        options.submissions, options.plain = 10, 2
    report = measure(options)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    print(table(report))
    print(f"\nnumbers: {options.output}")
    return 1 if report.wrong_scores else 0


def table(report: Report) -> str:
    """The numbers in words."""
    feedback = f"{report.rate_with_feedback:.1f}" if report.rate_with_feedback else "not measured"
    warm_ready = f"{report.ready_warm:.2f} s" if report.ready_warm else "cold only (not root)"
    cold_ready = f"{report.ready_cold:.2f} s" if report.ready_cold else "not measured"
    growth = report.memory_per_submission / 1e3
    return "\n".join(
        [
            f"{report.assignment}: {report.submissions} submissions, {report.plain_submissions} of them plain too; "
            f"{report.jobs} processes on {report.cores} cores, load before {report.load[0]:.1f}",
            f"plain nbgrader autograde    {report.plain_rate:8.1f} submissions a minute",
            f"autograder, sandbox on      {report.rate:8.1f}",
            f"  with feedback pages too   {feedback:>8}",
            f"ratio                       {report.ratio:8.1f}   (aim: 8)",
            f"kernel ready                {warm_ready}, cold {cold_ready}   (aim: 0.3 s warm)",
            f"a grading process           {report.cpu_per_submission:.2f} s of its own processor time a submission",
            f"its memory                  {report.memory_first / 1e6:.0f} MB, later {report.memory_last / 1e6:.0f} MB, "
            f"so {growth:+.0f} KB a submission",
            *(f"WRONG SCORE {line}" for line in report.wrong_scores),
        ]
    )


def measure(options: argparse.Namespace) -> Report:
    """All measurements, in folders that are deleted afterwards."""
    report = Report(
        options.assignment, options.submissions, options.jobs, os.cpu_count() or 1, platform.python_version(),
        [round(one, 2) for one in os.getloadavg()],
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-grading-") as folder:
        course = Course(options.course.resolve())
        ours, plain = Path(folder) / "ours", Path(folder) / "plain"
        open_nbgrader(course, ours)  # puts the configuration there
        _release(course, ours, options.assignment)
        plain.mkdir()
        (plain / CONFIG).write_text(_PLAIN)
        _release(course, plain, options.assignment)

        students = [f"s{number:04}" for number in range(options.submissions)]
        solved = {student: number % 4 != 3 for number, student in enumerate(students)}  # every fourth is a stub
        for student in students:
            _hand_in(course, ours, options.assignment, student, solved[student])
        halves = [students[: options.plain // 2], students[options.plain // 2 : options.plain]]
        seconds = _plain(course, ours, plain, options.assignment, halves[0])
        took = _ours(ours, options, "--no-feedback")
        seconds += _plain(course, ours, plain, options.assignment, halves[1])
        report.plain_submissions = options.plain
        report.plain_rate = 60 * options.plain / seconds
        report.rate = 60 * options.submissions / took
        report.ratio = report.rate / report.plain_rate
        _processes(ours, options.assignment, report)
        report.wrong_scores = _wrong(ours, options.assignment, solved)
        if not options.quick:
            report.rate_with_feedback = 60 * options.submissions / _ours(ours, options, "--force")
        _kernels(ours, report, 3 if options.quick else 10)
    return report


def _release(course: Course, root: Path, assignment: str) -> None:
    shutil.copytree(course.source(assignment), root / "source" / assignment)
    demand(open_nbgrader(Course(root), root).generate_assignment(assignment), f"generating {assignment}")


def _hand_in(course: Course, root: Path, assignment: str, student: str, solved: bool) -> None:
    """The solution, or the stub, with a cell of the learner's own that imports what takes long."""
    folder = root / "submitted" / student / assignment
    shutil.copytree(root / "release" / assignment, folder)
    for path in folder.glob("*.ipynb"):
        if solved:
            release.fill_in(path, course.source(assignment) / path.name)
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cell = {"cell_type": "code", "id": "imports-of-mine", "metadata": {}, "source": _IMPORTS}
        notebook["cells"].insert(1, {**cell, "execution_count": None, "outputs": []})
        path.chmod(0o644)
        path.write_text(json.dumps(notebook), encoding="utf-8")


def _plain(course: Course, ours: Path, root: Path, assignment: str, students: list[str]) -> float:
    """Seconds of `nbgrader autograde` on these submissions."""
    shutil.rmtree(root / "submitted", ignore_errors=True)
    for student in students:
        found = original(ours, assignment, student) or ours / "submitted" / student / assignment
        shutil.copytree(found, root / "submitted" / student / assignment)
    begin = time.monotonic()
    _call(root, "-m", "nbgrader", "autograde", assignment, "--log-level=ERROR")
    return time.monotonic() - begin


def _ours(root: Path, options: argparse.Namespace, *more: str) -> float:
    """Seconds of the command on the whole class, from its start to its end."""
    begin = time.monotonic()
    words = ["grade", options.assignment, "--course", str(root), "--jobs", str(options.jobs), *more]
    _call(Path.cwd(), "-m", "autograder", *words)
    return time.monotonic() - begin


def _call(folder: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _processes(root: Path, assignment: str, report: Report) -> None:
    lines = (root / f"{assignment}-telemetry.jsonl").read_text(encoding="utf-8").splitlines()
    done = [line for line in map(json.loads, lines) if "memory" in line]
    memory = [line["memory"] for line in done]
    size = max(len(memory) // 10, 1)
    report.memory_first = int(statistics.median(memory[:size]))
    report.memory_last = int(statistics.median(memory[-size:]))
    report.memory_per_submission = (report.memory_last - report.memory_first) / max(len(memory), 1) * report.jobs
    report.cpu_per_submission = statistics.mean(line["cpu_seconds"] for line in done)


def _wrong(root: Path, assignment: str, solved: dict[str, bool]) -> list[str]:
    """Speed counts for nothing where a solution has lost a point or a stub has one."""
    wrong = []
    for student, is_solved in solved.items():
        record: dict[str, Any] = json.loads((root / STATE / "graded" / assignment / f"{student}.json").read_text())
        result = record["result"]
        cells = [cell for cell in result["cells"] if cell["score"] is not None]
        right = sum(cell["points"] for cell in cells) if is_solved else 0
        if result["problem"] or sum(cell["score"] for cell in cells) != right:
            wrong.append(f"{student}: {result['score']:g} instead of {right:g} {result['problem']}")
    return wrong


def _kernels(root: Path, report: Report, count: int) -> None:
    """Seconds until a sandboxed kernel answers."""
    from traitlets.config import Config

    from autograder.course import kernelspec
    from autograder.run.learner import Learner

    name = kernelspec.ensure(root)

    def once() -> float:
        learner = Learner(name, root, ["--log-level=40"], Config())
        begin = time.monotonic()
        learner.start()
        took = time.monotonic() - begin
        learner.stop()
        return took

    report.ready_cold = statistics.median(once() for _ in range(2))
    with warm_kernels.fork_server(hide=(root.resolve(),)) as yard:
        if yard is not None:
            once()
            report.ready_warm = statistics.median(once() for _ in range(count))


if __name__ == "__main__":
    sys.exit(main())
