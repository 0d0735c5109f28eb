"""Proves an assignment's tests: what must lose points loses them, for its own reason, and what is right keeps them all.

Each solution of the bank (bank.py) takes its function's place in the instructor's notebook, which then goes the way of
a submission: it is run by the preprocessor that `nbgrader_config.py` names and scored by nbgrader's own rule. Nothing
of it enters a gradebook. A test that does not use the function, not through another one either, is run for the
reference alone. The random inputs come from one seed a run, which is printed, to repeat it.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.batch import pool
from autograder.course import source
from autograder.course.course import Course, load_config, open_nbgrader
from autograder.feedback import hints
from autograder.proof import bank, release
from autograder.run.remote import forks
from autograder.sandbox import warm_kernels

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI

BANK = "bank"  # in the course's folder
MOST_OF_HARD_CODED = 0.4  # share of the points that knowing the visible examples may earn
_MOST_SECONDS = 900  # for one notebook
_FAULTS = ("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError")


@dataclass(frozen=True)
class Trial:
    """One notebook to grade: the answers that it holds, or none as it was handed out."""

    variant: bank.Variant
    notebook: str
    answers: dict[str, str] = field(repr=False)
    untouched: frozenset[str] = frozenset()  # tests that cannot turn out otherwise than for the reference


@dataclass(frozen=True)
class Outcome:
    """What a trial earned of `points` (those given by hand left out), why it lost some, and what is wrong with that."""

    variant: bank.Variant
    score: float
    points: float
    lost: dict[str, str]  # test cell -> the message that the learner sees
    problem: str = ""


def prove(
    course: Course,
    assignments: Sequence[str],
    jobs: int = 1,
    seed: int | None = None,
    say: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Grade the stub, the reference and the whole bank of these assignments; `say` hears of each as it is done.

    With more than one job, each works in a process of its own. Raises CourseError for a malformed bank or assignment.
    """
    seed = secrets.randbelow(2**32) if seed is None else seed
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "course"
        api = open_nbgrader(course, root)
        plan = [trial for name in assignments for trial in _plan(course, api, name)]
        for outcome in _run(root, plan, jobs, seed):
            outcomes.append(outcome)
            if say is not None:
                say(outcome)
    order = {trial.variant: number for number, trial in enumerate(plan)}
    return sorted(outcomes, key=lambda outcome: order[outcome.variant])


def judge(variant: bank.Variant, score: float, points: float, lost: dict[str, str]) -> str:
    """What is wrong with this outcome, in words; empty if it is as it should be."""
    shown = ", ".join(f"{name} ({(message.splitlines() or [''])[0]})" for name, message in lost.items())
    if variant.kind in ("reference", "right"):
        return f"loses points at {shown}" if lost else ""
    if variant.kind == "stub":
        return f"scores {score:g}, not 0" if score else ""
    if variant.kind == bank.HARD_CODED:
        most = MOST_OF_HARD_CODED * points
        return f"scores {score:g}, not below {most:g}: further hidden inputs are needed" if score >= most else ""
    if not lost:
        return "keeps all points: the tests do not see this mistake"
    if kept := [name for name in variant.caught_by if name not in lost]:
        return f"is not caught by {', '.join(kept)}, only by {shown}"
    for name in variant.caught_by:
        message = lost[name].strip()
        if message.startswith(_FAULTS) or " raised NameError" in message:
            return f"fails at {name} for a reason of its own: {message.splitlines()[0]}"
        if ":" not in message:
            return f"its message at {name} says nothing: {message!r}"
    return ""


def unhinted(path: Path, variant: bank.Variant, lost: dict[str, str]) -> str:
    """What is wrong with the course's hints, if it has any: who makes this mistake must read the bank's hint for it."""
    if variant.kind != "wrong" or not path.is_file():
        return ""
    known = hints.read(path)
    shown = [hints.first(known, name, lost[name]) for name in variant.caught_by if name in lost]
    if any(hint is not None and variant.hint in hint.text for hint in shown):
        return ""
    return f"its hint is not shown: run `python -m autograder hints {variant.assignment}`"


def table(outcomes: Sequence[Outcome], messages: bool = False) -> str:
    """The outcomes, one a line, by assignment; with `messages` also what a learner would read, and the hint."""
    lines: list[str] = []
    width = max((len(outcome.variant.label) for outcome in outcomes), default=0)
    for assignment in dict.fromkeys(outcome.variant.assignment for outcome in outcomes):
        lines += ["", assignment]
        for outcome in (one for one in outcomes if one.variant.assignment == assignment):
            variant = outcome.variant
            note = outcome.problem or (", ".join(outcome.lost) if variant.kind == "wrong" else "")
            mark = "FAIL" if outcome.problem else "ok"
            score = f"{outcome.score:5g} of {outcome.points:g}"
            lines.append(f"  {mark:<4}  {variant.label:<{width}}  {score}  {note}".rstrip())
            if messages and variant.kind == "wrong":
                lines += [f"          {variant.title}", f"          hint: {variant.hint}"]
                for name in variant.caught_by:
                    message = outcome.lost.get(name, "").splitlines()
                    lines += [f"          {name}:", *(f"            {line}" for line in message)]
    failed = sum(bool(outcome.problem) for outcome in outcomes)
    right = sum(outcome.variant.kind == "right" for outcome in outcomes)
    wrong = sum(outcome.variant.kind == "wrong" for outcome in outcomes)
    total = f"{wrong} wrong and {right} right solutions, {len(outcomes) - wrong - right} others"
    lines += ["", f"{total}: {failed or 'none'} not as it should be"]
    return "\n".join(lines[1:])


def _plan(course: Course, api: NbGraderAPI, assignment: str) -> Iterator[Trial]:
    """The trials of an assignment. Puts its source and its released notebooks into the working course directory."""
    release.generate(api, course, assignment)
    known = {path.stem: source.read(path) for path in sorted(course.source(assignment).glob("*.ipynb"))}
    for name, notebook in known.items():
        for kind in ("stub", "reference"):
            variant = bank.Variant(assignment, "", kind, kind, kind, "", (), "")
            yield Trial(variant, name, _reference(notebook) if kind == "reference" else {})
    for variant in bank.read(course.root / BANK, assignment):
        # Hard-coded answers are for the first notebook; a function belongs to the one that asks for it.
        names = [name for name, notebook in known.items() if notebook.answer_with(variant.function)]
        name = names[0] if names else next(iter(known))
        answers = bank.answers(variant, known[name])
        untouched = frozenset() if variant.kind == bank.HARD_CODED else untouched_tests(known[name], answers)
        yield Trial(variant, name, {**_reference(known[name]), **answers}, untouched)


def untouched_tests(notebook: source.Source, answers: dict[str, str]) -> frozenset[str]:
    """Tests that use no name which these answers define, nor one of a cell that uses such a name, and so on."""
    touched = {name for cell in notebook.cells if cell.name in answers for name in cell.defines}
    for text in answers.values():
        touched |= source.defined(text)
    others = [cell for cell in notebook.cells if cell.kind != "test"]
    before = -1
    while len(touched) > before:
        before = len(touched)
        for cell in others:
            if source.used(cell.source) & touched:
                touched |= source.defined(cell.source)
    return frozenset(
        cell.name for cell in notebook.cells if cell.kind == "test" and not source.used(cell.source) & touched
    )


def _reference(notebook: source.Source) -> dict[str, str]:
    return {cell.name: cell.source for cell in notebook.cells if cell.kind == "answer"}


def _run(root: Path, plan: Sequence[Trial], jobs: int, seed: int) -> Iterator[Outcome]:
    """The outcomes as they are done."""
    pieces = [(root, trial, seed) for trial in plan]
    if jobs <= 1:
        yield from map(_try, pieces)
        return
    with forks.serving() as tests:
        environment = {forks.VARIABLE: tests}
        if (yard := warm_kernels.yard()) is not None:
            environment[warm_kernels.VARIABLE] = str(yard)
        for (_, trial, _), outcome in pool.run(_try, pieces, jobs, _MOST_SECONDS, environment):
            yield outcome if isinstance(outcome, Outcome) else Outcome(trial.variant, 0.0, 0.0, {}, outcome.reason)


def _try(piece: tuple[Path, Trial, int]) -> Outcome:
    """Grade one notebook in the working course directory, with this seed."""
    root, trial, seed = piece
    warnings.filterwarnings("ignore", module=r"nbgrader|sqlalchemy|traitlets|jupyter")
    import nbformat

    variant = trial.variant
    released = root / "release" / variant.assignment / f"{trial.notebook}.ipynb"
    notebook = nbformat.read(released, as_version=4)
    for cell in notebook.cells:
        if (name := source.grade_id(cell)) in trial.answers:
            cell.source = trial.answers[name]
    untouched = [cell for cell in notebook.cells if source.grade_id(cell) in trial.untouched]
    notebook.cells = [cell for cell in notebook.cells if source.grade_id(cell) not in trial.untouched]
    with tempfile.TemporaryDirectory() as desk:
        folder = Path(desk) / variant.assignment  # the sandbox knows the assignment by the folder's name
        folder.mkdir()
        about = {"assignment": variant.assignment, "notebook": trial.notebook, "student": "bank"}
        notebook = _grade(root, notebook, {"nbgrader": about, "metadata": {"path": str(folder)}}, seed)
    score, points, lost = _scores(notebook)
    kept = sum(float(cell.metadata.nbgrader.points) for cell in untouched)
    score, points = score + kept, points + kept
    problem = judge(variant, score, points, lost) or unhinted(
        root / "hints" / f"{variant.assignment}.toml", variant, lost
    )
    return Outcome(variant, score, points, lost, problem)


def _grade(root: Path, notebook: Any, resources: dict[str, Any], seed: int) -> Any:
    """Run a notebook as the course's configuration says that a submission is run."""
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import Execute
    from traitlets.utils.importstring import import_item

    config = load_config(root)
    config.SandboxedExecute.seed = seed
    named = config.Autograde.get("autograde_preprocessors") or Autograde().autograde_preprocessors
    kinds = [import_item(item) if isinstance(item, str) else item for item in named]
    runs = next((kind for kind in kinds if issubclass(kind, Execute)), Execute)
    notebook, _ = runs(config=config).preprocess(notebook, resources)
    return notebook


def _scores(notebook: Any) -> tuple[float, float, dict[str, str]]:
    """Points earned and possible in the test cells, by nbgrader's rule, and the message of each that lost some."""
    from nbgrader.utils import determine_grade, is_grade, is_solution

    score = possible = 0.0
    lost = {}
    for cell in notebook.cells:
        if not is_grade(cell) or is_solution(cell):
            continue
        earned, points = determine_grade(cell)
        score, possible = score + (earned or 0.0), possible + points
        if (earned or 0.0) < points:
            errors = [output for output in cell.outputs if output.output_type == "error"]
            words = f"{errors[-1].ename}: {errors[-1].evalue}" if errors else "it lost points without an error"
            lost[source.grade_id(cell)] = words.removeprefix("CheckError: ")
    return score, possible, lost


def main(course: Course, assignments: Sequence[str], jobs: int | None, seed: int | None, messages: bool) -> int:
    """The command: prints progress and the table; 0 if all is as it should be, 1 if not."""
    known = list(assignments) or course.assignments()
    for name in known:
        course.source(name)  # an unknown one is told before the work begins
    seed = secrets.randbelow(2**32) if seed is None else seed
    count = 0

    def say(outcome: Outcome) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty() or outcome.problem:
            end = "\n" if outcome.problem else ""
            print(f"\r{count:4}  {outcome.variant.assignment}/{outcome.variant.label:<60.60}", end=end, file=sys.stderr)

    with warm_kernels.fork_server():  # kernels are forked from one that has everything imported, where that is possible
        outcomes = prove(course, known, jobs or os.cpu_count() or 1, seed, say)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(table(outcomes, messages))
    print(f"random inputs drawn from --seed {seed}")
    return 1 if any(outcome.problem for outcome in outcomes) else 0
