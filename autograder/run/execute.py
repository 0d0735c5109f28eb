"""Runs a submission: the learner's cells in their kernel, the tests in a process of the grader's.

nbgrader's Execute runs both in one kernel, so a learner's code can read the tests, change what they check with, or
write the outcome. Here a test cell comes from the instructor's source notebook, runs in `grader_process`, and calls the
learner's functions across a wire. nbgrader's other steps see an ordinary executed notebook: an error output is no
credit, a number is partial credit, anything else full credit. Switched on in `nbgrader_config.py`:

    c.Autograde.autograde_preprocessors = ["autograder.execute.SandboxedExecute", ...]
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute
from traitlets import Integer

from autograder.course import kernelspec, seeds, source
from autograder.feedback import messages
from autograder.intake.text import clip, visible
from autograder.run.budget import InterruptedRunError
from autograder.run.learner import Answer, Learner
from autograder.run.outputs import Outputs
from autograder.run.remote.grader import Grader
from autograder.run.slot import slot


class SandboxedExecute(Execute):
    """Execute with tests on our side. `timeout` is for one cell, `budget` for all of a notebook's cells together."""

    budget = Integer(300, help="Seconds that all cells of a notebook may take together.").tag(config=True)
    restarts = Integer(5, help="How often a notebook's kernel is started again after its death.").tag(config=True)
    text_bytes = Integer(64_000, help="Bytes of printed text kept of one cell.").tag(config=True)
    rich_bytes = Integer(2_000_000, help="Bytes of figures and the like kept of one cell.").tag(config=True)
    output_bytes = Integer(20_000_000, help="Bytes of text and figures kept of all cells together.").tag(config=True)
    test_memory = Integer(6 * 2**30, help="Bytes of memory for the process that runs the tests.").tag(config=True)
    seed = Integer(
        None,
        allow_none=True,
        help="Seed of the random inputs. By default it is made from the course's secret and the submission's code, and "
        "recorded in the graded notebook's metadata.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any = None, km: Any = None) -> tuple[NotebookNode, Any]:
        """Run all code cells and put in their outputs. Raises RuntimeError if the source notebook cannot be read.

        A run that the machine starved or killed is repeated once, while nothing else of the course is run. Raises
        InterruptedRunError if that run is starved too.
        """
        about = resources["nbgrader"]
        course = self._course()
        folder = Path(course.format_path(course.source_directory, ".", about["assignment"]))
        path = folder / f"{about['notebook']}.ipynb"
        try:
            known = source.read(path)
        except (OSError, ValueError, KeyError) as error:
            raise RuntimeError(f"the tests cannot be read from {path}: {error}") from error
        code = [cell.source for cell in nb.cells if cell.cell_type == "code" and not _is_ours(known, cell)]
        seed = self.seed
        if seed is None:
            seed = seeds.seed(Path(course.root), about["assignment"], about["notebook"], about["student"], *code)
        root = Path(course.root)
        try:
            with slot(root):
                about_run = self._run_cells(nb, resources, known, folder, seed)
        except InterruptedRunError as error:
            self.log.warning("%s; it is run again, alone", error)
            with slot(root, alone=True):
                about_run = self._run_cells(nb, resources, known, folder, seed, last=True)
            about_run["repeated"] = str(error)
        nb.metadata["autograder"] = {
            **nb.metadata.get("autograder", {}),
            "seed": seed,
            **about_run,
        }
        nb.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        return nb, resources

    def _run_cells(
        self, nb: NotebookNode, resources: Any, known: source.Source, folder: Path, seed: int, last: bool = False
    ) -> dict[str, Any]:
        """Run the cells once; returns what that took. `last`: this run is not repeated."""
        learner = Learner(
            self.kernel_name or kernelspec.ensure(Path(self._course().root)),  # by default never without a sandbox
            Path(resources["metadata"]["path"] or "."),
            list(self.extra_arguments),
            self.config,
            self.startup_timeout,
        )
        grader = Grader(folder, seed, self.test_memory, sorted(known.imported))
        run = _Run(self, known, learner, grader, last)
        try:
            learner.start()
            for cell in nb.cells:
                if cell.cell_type == "code":
                    run.cell(cell)
            usage = learner.usage()
        finally:
            learner.stop()
            grader.stop()
        return {
            "seconds": round(self.budget - run.left, 3),
            "restarts": run.restarted,
            "cells": [asdict(record) for record in run.records],
            **usage,
        }

    def _course(self) -> CourseDirectory:
        owner: Any = self
        while owner is not None:
            if isinstance(found := getattr(owner, "coursedir", None), CourseDirectory):
                return found
            owner = owner.parent
        return CourseDirectory(config=self.config)


@dataclass
class Record:
    """What one cell took: wall seconds, the kernel's processor seconds and its peak memory so far (bytes), and the
    questions that a test asked. `shown` is what the learner reads where a test's error tells of hidden values."""

    name: str
    kind: str
    seconds: float = 0.0
    questions: int = 0
    cpu_seconds: float = 0.0
    memory_peak: float = 0
    shown: str = ""


class _Run:
    """One notebook's way through its cells."""

    def __init__(
        self, settings: SandboxedExecute, known: source.Source, learner: Learner, grader: Grader, last: bool
    ) -> None:
        self.settings, self.known, self.learner, self.grader, self.last = settings, known, learner, grader, last
        self.left = float(settings.budget)
        self._output_left = settings.output_bytes
        self.restarted: list[str] = []
        self.records: list[Record] = []
        self._worked: list[str] = []  # cells to run again in a new kernel
        self._failed: dict[str, str] = {}  # cell -> how it failed
        self._set_up: set[str] = set()  # set-up cells that the tests' process has run
        self._tested: set[str] = set()
        self._lost: set[str] = set()  # answer cells whose own tests have failed
        self._used = 0.0  # processor seconds of the kernel in the cells before

    def cell(self, cell: NotebookNode) -> None:
        """Run one code cell and put its outputs in."""
        name = source.grade_id(cell)
        known = self.known.find(name) if name else None
        kind = known.kind if known else "other"
        self.records.append(Record(name or f"number {len(self.records) + 1}", kind))
        begin = time.monotonic()
        cell.outputs = []
        if known and kind in ("test", "setup"):
            cell.source = known.source
        if known and kind == "test":
            cell.outputs = self._test(known)
        elif cell.source.strip():
            cell.outputs = self._learners(cell.source, name)
        cell.execution_count = len(self.records)
        record, after = self.records[-1], self.learner.usage()
        record.seconds = round(time.monotonic() - begin, 3)
        if after:  # a new kernel counts from 0 again
            cpu = after["cpu_seconds"]
            record.cpu_seconds = round(cpu - (self._used if cpu >= self._used else 0.0), 3)
            self._used = cpu
            record.memory_peak = after["memory_peak"]

    def _learners(self, text: str, name: str) -> list[NotebookNode]:
        most = max(self._output_left, 0)
        outputs = Outputs(min(self.settings.text_bytes, most), min(self.settings.rich_bytes, most))
        if problem := self._ready():
            outputs.error("NotRun", problem)
        else:
            answer = self._spend(lambda seconds: self.learner.run(text, seconds, outputs))
            if answer.kind == "ok":
                self._worked.append(text)
            elif answer.kind != "error":
                outputs.error({"timeout": "Timeout", "died": "KernelDied"}.get(answer.kind, "NoAnswer"), answer.words)
        kept = outputs.finish()
        self._output_left -= outputs.kept_bytes
        if name and (error := next((output for output in reversed(kept) if output.output_type == "error"), None)):
            self._failed[name] = f"cell {name} raised {error.ename}: {clip(error.evalue, 300)}".rstrip(": ")
        return kept

    def _test(self, known: source.SourceCell) -> list[NotebookNode]:
        if known.name in self._tested:
            return [_error("Repeated", "this test stands twice in the notebook; only the first counts")]
        self._tested.add(known.name)
        if problem := self._ready():
            return [_error("NotRun", problem)]
        if not self.grader.running:
            self._set_up.clear()
        for cell in self.known.setup_before(known.name):
            if cell.name not in self._set_up:
                self._set_up.add(cell.name)
                self._grade(cell)
        result, failure = self._grade(known)
        note = ""
        if result["error"] is not None and failure is None and (stand_ins := self._stand_ins(known)):
            again, failure_again = self._grade(known, stand_ins)
            if failure_again is None:
                result = again
                note = (
                    f"graded with the course's own {' and '.join(stand_ins)} in place of yours, which failed its tests"
                )
                result["printed"] = f"{result.get('printed') or ''}{note}\n"
        shown = [new_output("stream", name="stdout", text=result["printed"])] if result.get("printed") else []
        error = result["error"]
        if failure is not None and (error is None or error["ename"] != "NoAnswer"):
            error = {"ename": "NoAnswer", "evalue": failure.words}
        if error is None and (value := result.get("value")) is not None:
            error, credit = _credit(value, known.points)
            shown += credit
        if error is None:
            return shown
        if result.get("trace"):
            self.settings.log.debug("%s:\n%s", known.name, result["trace"])
        self._lost.add(self.known.answer_before(known.name))
        because = self._because(error) + (f"\n  {note}" if note else "")
        if "shown" in error:
            self.records[-1].shown = error["shown"] + because
        return [*shown, _error(error["ename"], error["evalue"] + because)]

    def _stand_ins(self, test: source.SourceCell) -> list[str]:
        """Functions of earlier parts that failed their own tests: the course's own may stand in for them."""
        own = self.known.answer_before(test.name)
        earlier = self.known.answers_before(own)
        return sorted(name for cell in earlier if cell.name in self._lost for name in cell.functions)

    def _grade(self, cell: source.SourceCell, stand_ins: Sequence[str] = ()) -> tuple[dict[str, Any], Answer | None]:
        """Run a cell in the tests' process; also what ended the learner's kernel or its time meanwhile."""
        earlier = self.known.answers_before(self.known.answer_before(cell.name)) if stand_ins else []
        message = {
            "source": cell.source,
            "hidden": cell.hidden,
            "learners": sorted(self.known.learners_names),
            "stand_ins": list(stand_ins),
            "course": [answer.source for answer in earlier],
        }
        result, failure = self._spend(lambda seconds: self.grader.run(message, seconds, self.learner))
        self.records[-1].questions += result.get("questions", 0)
        return result, failure

    def _ready(self) -> str:
        """Make sure that there is a kernel and time; otherwise say why not."""
        while not self.learner.alive:
            if len(self.restarted) >= self.settings.restarts:
                return f"the kernel was lost {len(self.restarted) + 1} times, so no more cells were run"
            self.restarted.append(self.records[-1].name)
            self.learner.start()
            for text in list(self._worked):
                seconds_left = self.left
                if seconds_left <= 0:
                    break
                answer = self._spend(lambda seconds, text=text: self.learner.run(text, seconds, Outputs(0, 0)))
                if answer.kind not in ("ok", "error"):
                    self._worked.remove(text)
                if not self.learner.alive:
                    break
        if self.left <= 0:
            return f"the {self.settings.budget} seconds that a notebook may take were used up by the cells before"
        return ""

    def _spend(self, work: Any) -> Any:
        """Do `work(seconds)` within the time of a cell and of the notebook. Raises InterruptedRunError.

        A notebook may kill its own kernel, so a kernel that is killed in the last run too counts as ended by itself.
        """
        limit = self.settings.timeout
        seconds = self.left if limit is None or limit < 0 else min(float(limit), self.left)
        clock = self.learner.deadline(seconds)
        result = work(seconds)
        if clock.starved() or self.learner.lost_to == "starved":
            raise InterruptedRunError(f"cell {self.records[-1].name} got too little of a processor to be judged")
        if self.learner.lost_to == "killed" and not self.last:
            raise InterruptedRunError(f"the kernel was killed in cell {self.records[-1].name}")
        self.left -= clock.spent()
        return result

    def _because(self, error: dict[str, str]) -> str:
        """Why a name is missing, if the cell that should define it failed."""
        missing = messages.missing_name(error["evalue"])
        failed = self._failed.get(self.known.answer_with(missing)) if missing else None
        return f" ({failed})" if failed else ""


def _credit(value: dict[str, str], points: float) -> tuple[dict[str, str] | None, list[NotebookNode]]:
    """Partial credit from a test's last value: the output that nbgrader reads, or what is wrong with it."""
    if "number" in value:
        number = float(value["number"])
        if math.isfinite(number) and 0 <= number <= points:
            return None, [new_output("execute_result", data={"text/plain": value["number"]}, execution_count=None)]
        shown = value["number"]
    else:
        shown = f"a value of type {value['kind']}"
    words = f"the test ended in {shown}, which is no number of points from 0 to {points:g}"
    return {"ename": "PartialCreditError", "evalue": words}, []


def _error(name: str, words: str) -> NotebookNode:
    name, words = visible(clip(name, 200)), visible(clip(words, 8000))
    return new_output("error", ename=name, evalue=words, traceback=[f"{name}: {words}"])


def _is_ours(known: source.Source, cell: NotebookNode) -> bool:
    found = known.find(source.grade_id(cell))
    return found is not None and found.kind in ("test", "setup")
