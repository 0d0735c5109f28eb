"""The learner's own check: run a notebook from a fresh start and say in words which of its tests fail.

Nothing is sent anywhere and the file is left as it was. Only the tests that the notebook shows are run; grading runs
further inputs. A cell that hangs or ends its kernel costs its own test only: the rest goes on in a new kernel, in which
the cells that worked before are run again. Where the course shows model answers, a question that a person grades can be
compared with its own once it is answered.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import time
from pathlib import Path
from typing import TypedDict

from autograder.course import model_answers
from autograder.course.course import CourseError
from autograder.feedback import messages
from autograder.run.own_check.cells import Cell, Written, read_cells

SECONDS = 60  # for one cell
BUDGET = 300  # seconds for all cells together
_KERNELS = 6  # that are started for one notebook


def check(path: Path, seconds: float = SECONDS, budget: float = BUDGET, course: Path | None = None) -> int:
    """Run the notebook and print a line for each test; 0 if all pass, 1 if not.

    `course`: the folder whose model answers may be pointed to. Raises CourseError if the file cannot be read, holds no
    test, or if no kernel can be started.
    """
    cells, written = read_cells(path)
    points = sum(cell.points for cell in cells if cell.is_test)
    passed = 0.0
    failed = False
    run = _Run(cells, path.resolve().parent, seconds, budget)
    try:
        for cell in cells:
            problem = run.cell(cell)
            if problem:
                failed = True
                print(f"FAIL  {cell.name}\n" + "\n".join(f"      {line}" for line in problem.splitlines()), flush=True)
            elif cell.is_test:
                passed += cell.points
                print(f"ok    {cell.name}", flush=True)
    finally:
        run.learner.stop()
    by_hand = sum(one.points for one in written)
    more = f" Written answers, read by a person, are worth {by_hand:g} more." if by_hand else ""
    print(f"\nThe tests that passed are worth {passed:g} of {points:g} points.{more}")
    if course is not None:
        _point_to_model_answers(path, course, written)
    return 1 if failed else 0


def _point_to_model_answers(path: Path, course: Path, written: list[Written]) -> None:
    known = {one.name for one in model_answers.of_notebook(course, path.stem)}
    for one in written:
        if one.name in known:
            command = f"python -m autograder check {shlex.quote(str(path))} --answer {one.name}"
            how = command if one.answered else "answer it first"
            print(f"Model answer and rubric of {one.name} ({one.points:g} points): {how}")


def show_model_answer(path: Path, course: Path, name: str) -> int:
    """Print the model answer and the rubric of the question `name`; 0.

    Raises CourseError where the notebook does not answer it yet, and where the course has none to show.
    """
    _, written = read_cells(path)
    cell = next((one for one in written if one.name == name), None)
    if cell is None:
        known = ", ".join(one.name for one in written) or "none"
        raise CourseError(f"{path.name} has no written answer {name!r} (written answers: {known})")
    found = next((one for one in model_answers.of_notebook(course, path.stem) if one.name == name), None)
    if found is None:
        raise CourseError(f"the course in {course} shows no model answer for {name}")
    if not cell.answered:
        fewest = model_answers.FEWEST_WORDS
        raise CourseError(f"{name} is not answered yet: write at least {fewest} words and save, then ask again")
    print(f"{name}, {found.points:g} points\n\n{found.text}")
    return 0


def _as_traced(source: str) -> str:
    """A cell's text as a traceback shows it: magics made Python. One that cannot be parsed stays as it is."""
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        return TransformerManager().transform_cell(source)
    except SyntaxError:
        return source


class _Frame(TypedDict):
    """A frame of an error, as `last_error.report` tells it."""

    cell: str  # the cell's text
    function: str
    line: int
    code: str  # that line
    input: str  # the arguments of the call made in it


class _LastError(TypedDict, total=False):
    type: str
    frames: list[_Frame]  # outermost first
    syntax: tuple[int, str, str]  # of a SyntaxError: line, code, text


class _Run:
    """One notebook's way through its cells."""

    def __init__(self, cells: list[Cell], folder: Path, seconds: float, budget: float) -> None:
        from autograder.run.learner import Learner

        self.seconds, self.budget, self.left = seconds, budget, budget
        # The kernel's own log would only bury the results: what a cell raised is told below.
        self.learner = Learner("python3", folder, ["--log-level=50"], None)
        self._kernels = 0
        self._worked: list[Cell] = []  # to run again in a new kernel
        self._failed: list[tuple[Cell, str]] = []  # and how
        self._by_text = {_as_traced(cell.source).strip(): cell for cell in cells}

    def cell(self, cell: Cell) -> str:
        """Run a cell; returns what is wrong, in words, or nothing."""
        if problem := self._ready():
            return f"not run: {problem}"
        seconds = min(self.seconds, self.left)
        kind, error = self._execute(cell.source)
        if kind == "ok":
            if not cell.is_test:
                self._worked.append(cell)
            return ""
        if kind == "error":
            short, words = f"raised {error[0]}: {error[1]}".rstrip(": ").splitlines()[0], self._words(cell, *error)
        elif kind == "timeout":
            short = f"did not end within {seconds:.3g} seconds"
            words = f"{self._where_it_was()}{short}" + (" (all that was left)" if seconds < self.seconds else "")
        else:
            short = "ended its kernel"
            words = f"{short}: did it leave Python (os._exit), crash, or take too much memory?"
        if not cell.is_test:
            self._failed.append((cell, short))
        return words

    def _execute(self, source: str) -> tuple[str, tuple[str, str]]:
        """Run code: "ok", "error", "timeout" or what else ended it; and the error's name and text."""
        from autograder.run.outputs import Outputs

        outputs, begin = Outputs(), time.monotonic()
        answer = self.learner.run(source, min(self.seconds, self.left), outputs)
        self.left -= time.monotonic() - begin
        errors = [output for output in outputs.finish() if output.output_type == "error"]
        if answer.kind == "error" or (answer.kind == "ok" and errors):
            return "error", (errors[-1].ename, errors[-1].evalue) if errors else ("Error", "")
        return answer.kind, ("", "")

    def _ready(self) -> str:
        """Make sure that there is a kernel and time; otherwise say why not."""
        while self.left > 0 and not self.learner.alive:
            if self._kernels >= _KERNELS:
                return f"{_KERNELS} kernels were lost in the cells before"
            self._kernels += 1
            try:
                self.learner.start()
            except Exception as error:
                why = (str(error).splitlines() or [type(error).__name__])[0]
                raise CourseError(f"no kernel can be started: {why}") from error
            for cell in list(self._worked):
                if self._execute(cell.source)[0] not in ("ok", "error"):
                    self._worked.remove(cell)
                    self._failed.append((cell, "could not be run again in a new kernel"))
                if not self.learner.alive:
                    break
        return "" if self.left > 0 else f"the cells before took all of the {self.budget:g} seconds for a notebook"

    def _last_error(self) -> _LastError:
        """What the kernel remembers of the last error (see last_error.py); empty if it cannot say."""
        from autograder.run.outputs import Outputs

        source = (Path(__file__).parent / "last_error.py").read_bytes()
        coded = base64.b64encode(source + b"\nprint(report())\n").decode()
        outputs = Outputs()
        if not self.learner.alive:
            return {}
        self.learner.run(f"exec(__import__('base64').b64decode('{coded}').decode(), {{}})", 10, outputs)
        try:
            found: _LastError = json.loads(outputs.text())
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _words(self, cell: Cell, name: str, text: str) -> str:
        """What a cell raised, as grading would say it."""
        if name == "CheckError":
            what, _, rest = text.partition(":")
            if rest.endswith("got:       NotImplementedError"):  # a test that expects another error, and a stub
                return messages.not_written(what)
            return text
        error = self._last_error()
        if error.get("type") != name:
            error = {}
        if found := re.search(r" \(<tokenize>, line (\d+)\)$", text):  # raised before Python saw the cell
            code = cell.source.splitlines()[int(found[1]) - 1].strip()
            return f"{name}: {text[: found.start()]} (line {found[1]} of this cell: {code})"
        if "syntax" in error:
            line, code, text = error["syntax"]
            return f"{name}: {text} (line {line} of this cell: {code})"
        theirs, own, given = self._frames(error.get("frames", []), cell)
        because = self._because(name, text)
        if theirs:
            what, last = theirs[0]["function"], theirs[-1]
            if name == "NotImplementedError" and not text:
                return messages.not_written(what)
            said = messages.learners_error(name, text, what, last["line"], last["code"]) + because
            if cell.is_test and own:
                said += f"\n  for input: {given}" if given else ""
                said += f"\n  called in line {own['line']} of the test: {own['code']}"
            return said
        if name == "NotImplementedError" and not text:
            return messages.not_written("a function above")
        if cell.is_test and own:
            if name == "AssertionError":
                return text or messages.does_not_hold(cell.source, own["line"]) or name
            stopped = messages.could_not_go_on(text, f"line {own['line']} of the test")
            return f"{name}: {text + because if because else stopped}"
        at = f" (line {own['line']} of this cell: {own['code']})" if own else ""
        return f"{name}: {text}".rstrip(": ") + because + at

    def _frames(self, frames: list[_Frame], cell: Cell) -> tuple[list[_Frame], _Frame | None, str]:
        """The frames in learner's functions; `cell`'s own frame before them; the arguments of the call from there."""
        theirs: list[_Frame] = []
        own: _Frame | None = None
        given = ""
        for frame in frames:
            home = self._by_text.get(frame["cell"].strip())
            if home is not None and not home.ours and frame["function"] != "<module>":
                theirs.append(frame)
            elif not theirs:
                given = frame["input"]
                own = frame if home is cell or own is None else own
        return theirs, own, given

    def _where_it_was(self) -> str:
        """The function of the learner's that was interrupted, and its line."""
        error = self._last_error()
        frames = error.get("frames", []) if error.get("type") == "KeyboardInterrupt" else []
        theirs = [frame for frame in frames if (home := self._by_text.get(frame["cell"].strip())) and not home.ours]
        if not theirs:
            return ""
        what, last = theirs[0]["function"], theirs[-1]
        who = "this cell" if what == "<module>" else what
        return f"{who} was stopped in line {last['line']} of its cell ({last['code']}): it "

    def _because(self, name: str, text: str) -> str:
        """Why a name is missing, if a cell that should define it failed."""
        missing = messages.missing_name(text) if name == "NameError" else ""
        if not missing:
            return ""
        defines = re.compile(rf"^\s*(?:def|class)\s+{missing}\b|^{missing}\s*[:=]|import .*\b{missing}\b", re.M)
        found = [f" (cell {cell.name} {how})" for cell, how in self._failed if defines.search(cell.source)]
        return found[-1] if found else ""
