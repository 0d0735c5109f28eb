"""Grades all submissions of an assignment: in parallel, each to a score or a named reason, and resumable at any point.

A submission is one piece of work, `grade_one`, which depends on nothing but its course directory. So any number of
processes, or a cluster that sees the same directory, can do the pieces in any order. What is done is written down piece
by piece, beside a hash of all that the grade depends on; a run does what is missing or has changed. A submission that
could not be graded because something of ours failed is not written down: the next run tries it again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.batch import pool, progress
from autograder.batch.scores import CellScore, Result, autograde, read
from autograder.course import CONFIG
from autograder.course.course import Course, CourseError, fingerprint, last_words, load_config, open_nbgrader
from autograder.intake.owner import owned
from autograder.run.remote import forks
from autograder.sandbox import launch, warm_kernels

with suppress(ImportError):  # Windows has neither, and grades nothing; `check` works there
    import fcntl
    import resource

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI

Say = Callable[[str], None]
STATE = ".autograder"  # in the course directory
_OPEN: dict[Path, NbGraderAPI] = {}
_IMPORT = re.compile(r"(?:\\n|\b)(?:import|from)\s+([\w., ]+)")  # in JSON a line may begin behind \\n


@dataclass(frozen=True)
class Task:
    """One submission of a course directory that a worker can see under the same path."""

    root: Path
    assignment: str
    student: str
    feedback: bool = True


@dataclass(frozen=True)
class Plan:
    """What a batch should do. `jobs` counts processes (0: one per core); `scheduler` is a Dask scheduler's address."""

    jobs: int = 0
    scheduler: str = ""
    force: bool = False
    feedback: bool = True


def grade_one(task: Task) -> Result:
    """Take in, autograde and write feedback for one submission; a failure of ours is in `Result.ungraded`."""
    if not (task.root / CONFIG).is_file():
        return _ungraded(task, f"{task.root / CONFIG} cannot be seen on this machine")
    wall, cpu = time.monotonic(), _cpu()
    try:
        api = _OPEN.get(task.root)
        if api is None:
            api = _OPEN[task.root] = open_nbgrader(Course(task.root), task.root)
        with owned(task.root, task.assignment, task.student):
            result = autograde(api, task.assignment, task.student)
            # Now, since somebody else may take in a new one as soon as this one is given up.
            result = replace(result, graded=fingerprint(task.root / "submitted" / task.student / task.assignment))
            if task.feedback and not result.ungraded:
                written = api.generate_feedback(task.assignment, task.student, force=True)
                if not written["success"]:
                    result.repairs.append(f"No feedback could be written: {last_words(written)}")
    except Exception as error:  # one submission never stops the others
        return _ungraded(task, f"grading failed: {type(error).__name__}: {error}")
    result.telemetry["process"] = {
        "wall_seconds": round(time.monotonic() - wall, 3),
        "cpu_seconds": round(_cpu() - cpu, 3),
        "memory": pool.memory(),
    }
    return result


def _ungraded(task: Task, reason: str) -> Result:
    return Result(task.student, None, 0.0, ungraded=reason)


def run(api: NbGraderAPI, assignment: str, students: Sequence[str], plan: Plan, say: Say) -> list[Result]:
    """Bring the grades of these students' submissions up to date; results in the order of `students`.

    `api` is nbgrader's on the course directory, in which the assignment is released. Raises CourseError if another
    batch works on the same assignment; KeyboardInterrupt leaves what was done, and a later run goes on from there.
    """
    from autograder.course.gradebook import enrol  # nbgrader takes seconds to import

    root = Path(api.coursedir.root).resolve()
    with _alone(root, assignment):
        basis = fingerprint(*(path for path in _basis(root, assignment) if path.exists()))
        done = {} if plan.force else {name: _recall(root, assignment, name, basis) for name in students}
        todo = [name for name in students if done.get(name) is None]
        results = {name: _read_again(api, assignment, before) for name, before in done.items() if before is not None}
        enrol(api, assignment, todo)
        bar = progress.Progress(len(todo), say)
        with (root / f"{assignment}-telemetry.jsonl").open("a", encoding="utf-8") as telemetry:
            for task, result in _do([Task(root, assignment, name, plan.feedback) for name in todo], plan, say):
                if isinstance(result, pool.Lost):
                    result = _ungraded(task, result.reason)
                if result.ungraded:  # what an earlier run found stays in the gradebook
                    result = read(api, assignment, task.student, result.problem, result.repairs, result.ungraded)
                results[task.student] = result
                try:
                    _remember(root, assignment, basis, result)
                    telemetry.write("".join(f"{json.dumps(line)}\n" for line in _lines(assignment, result)))
                    telemetry.flush()
                except OSError as error:  # the grade is in the gradebook; the next run only does it again
                    say(f"{task.student}: that it was graded could not be written down: {error}")
                bar.step(task.student)
        bar.close()
    return [results[name] for name in students]


def _do(tasks: list[Task], plan: Plan, say: Say) -> Iterator[tuple[Task, Any]]:
    if not tasks:
        return
    if plan.scheduler:
        from autograder.batch.cluster import run as on_cluster

        yield from on_cluster(grade_one, tasks, plan.scheduler, say)
        return
    try:
        launch.check()
    except launch.SandboxError as error:
        yield from ((task, pool.Lost(f"no sandbox works here: {error}")) for task in tasks)
        return
    jobs = min(plan.jobs or os.cpu_count() or 1, len(tasks))
    root = tasks[0].root
    modules = slow_imports(root, tasks[0].assignment)
    with warm_kernels.fork_server(modules, (root,)) as yard, forks.serving() as tests:
        if yard is None and len(tasks) > 1:
            say("kernels start cold: only root can fork them")
        environment = {forks.VARIABLE: tests} | ({warm_kernels.VARIABLE: str(yard)} if yard else {})
        yield from pool.run(grade_one, tasks, jobs, _most_seconds(root), environment)


def slow_imports(root: Path, assignment: str) -> list[str]:
    """What takes long to import and is named by the assignment or by a submission; it is imported once for all."""
    paths = [*root.glob(f"source/{assignment}/*.ipynb"), *root.glob(f"submitted/*/{assignment}/*.ipynb")]
    found: set[str] = set()
    for path in paths:
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes()[:1_000_000].decode("utf-8", "replace")
            for words in _IMPORT.findall(text):
                found |= forks.WORTH_IT.intersection(re.findall(r"\w+", words))
    return sorted(found)


def _most_seconds(root: Path) -> float:
    """Longer than any submission can take that obeys the course's own limits."""
    budget = load_config(root).SandboxedExecute.get("budget", 300)
    notebooks = 10
    return float(budget) * notebooks + 300


def _basis(root: Path, assignment: str) -> list[Path]:
    """All that a grade depends on beside the submission."""
    return [root / CONFIG, root / "source" / assignment, root / "release" / assignment, root / "hints"]


def _recall(root: Path, assignment: str, student: str, basis: str) -> Result | None:
    """What an earlier run found out, if nothing has changed since."""
    submitted, autograded = (root / step / student / assignment for step in ("submitted", "autograded"))
    try:
        record = json.loads(_record(root, assignment, student).read_text(encoding="utf-8"))
        if record["basis"] != basis or record["submission"] != fingerprint(submitted):
            return None
        result = record["result"]
        if not autograded.is_dir() and not result["problem"]:
            return None
        return Result(**{**result, "cells": [CellScore(**cell) for cell in result["cells"]]})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(root: Path, assignment: str, basis: str, result: Result) -> None:
    if result.ungraded:  # to be tried again
        _record(root, assignment, result.student).unlink(missing_ok=True)
        return
    record = {"basis": basis, "submission": result.graded, "result": asdict(result)}
    path = _record(root, assignment, result.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(record), encoding="utf-8")
    os.replace(fresh, path)  # seen whole or not at all


def _record(root: Path, assignment: str, student: str) -> Path:
    return root / STATE / "graded" / assignment / f"{student}.json"


def _read_again(api: NbGraderAPI, assignment: str, before: Result) -> Result:
    """An unchanged submission's grades as they are now: some may have been given by hand since."""
    return read(api, assignment, before.student, before.problem, before.repairs)


def _lines(assignment: str, result: Result) -> Iterator[dict[str, Any]]:
    """Telemetry: a line for each cell, then one for the submission."""
    who = {"time": round(time.time(), 3), "assignment": assignment, "student": result.student}
    for notebook, about in result.telemetry.items():
        for cell in about.get("cells", []):
            yield {**who, "notebook": notebook, **{key: value for key, value in cell.items() if key != "shown"}}
    process = result.telemetry.get("process", {})
    problem = result.ungraded or result.problem
    yield {**who, **process, "score": result.score, "max_score": result.max_score, "problem": problem}


def _cpu() -> float:
    """Processor seconds of this process and of the children that it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def _alone(root: Path, assignment: str) -> Iterator[None]:
    """Hold the assignment for this batch alone; the lock ends with the process, however that ends."""
    path = root / STATE / f"{assignment}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CourseError(f"{assignment} is being graded by another batch in {root}") from None
        yield
