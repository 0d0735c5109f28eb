"""Grade an assignment: a class's collected submissions in their course directory, or those that a course carries.

generate, release, submit, collect, autograde, feedback and export are nbgrader's; this file orders them, does only what
a change asks for, and tells what happened. What it leaves is an ordinary course directory that formgrader opens.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.batch import batch
from autograder.batch.batch import Plan
from autograder.batch.scores import Result
from autograder.course.course import CONFIG, Course, CourseError, check_switched_on, demand, fingerprint, open_nbgrader
from autograder.proof import release

Say = Callable[[str], None]
_FEW = 12  # submissions for which the summary tells every lost point


@dataclass(frozen=True)
class Graded:
    """What a run leaves: one result for each submission, and where its files are."""

    results: list[Result]
    csv: Path
    work: Path


@dataclass
class _State:
    """What earlier runs did, kept beside the gradebook: hashes of what was released and of what was handed in."""

    released: str
    handed_in: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> _State:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls("", {})

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def grade(course: Course, assignment: str, work: Path, plan: Plan | None = None, say: Say = print) -> Graded:
    """Bring the gradebook in `work` up to date with the submissions that the course carries, of one assignment.

    Only what changed is done again, all of it with `plan.force`. A submission that cannot be graded has its reason in
    `Result.problem` and does not stop the others. Raises CourseError for what is wrong with the assignment itself.
    """
    plan = plan or Plan()
    source = course.source(assignment)
    submissions = course.submissions(assignment)
    work.mkdir(parents=True, exist_ok=True)
    state_file = work / f"{assignment}.json"
    state = _State.load(state_file)

    version = fingerprint(source, course.root / CONFIG)
    if plan.force or state.released != version:
        say(f"release   {assignment}: checking markers, leaks, the stub and the solution")
        release.prove(course, assignment)
    api = open_nbgrader(course, work)
    if plan.force or state.released != version:
        release.generate(api, course, assignment)
        shutil.rmtree(Path(api.config.Exchange.root) / api.course_id / "outbound" / assignment, ignore_errors=True)
        demand(api.release_assignment(assignment), f"releasing {assignment}")
        state = _State(version, {})
        state.save(state_file)

    hashes = {name: fingerprint(path) for name, path in submissions.items()}
    changed = [name for name in submissions if state.handed_in.get(name) != hashes[name]]
    for name in changed:
        _hand_in(api, assignment, name, submissions[name], work)
    if changed:
        say(f"collect   {len(changed)} new or changed of {len(submissions)} submissions")
        demand(api.collect(assignment, update=True), f"collecting {assignment}")
        state.handed_in.update(hashes)
        state.save(state_file)
    return _finish(api, assignment, list(submissions), plan, say)


def grade_class(root: Path, assignment: str, plan: Plan | None = None, say: Say = print) -> Graded:
    """Grade all collected submissions (`submitted/*/ASSIGNMENT`) in an nbgrader course directory.

    The assignment is generated if that was not done yet. Raises CourseError, above all where the course's configuration
    does not switch the sandbox on.
    """
    root = root.resolve()
    course = Course(root)
    course.source(assignment)
    api = open_nbgrader(course, root)
    check_switched_on(api, root)
    students = sorted(path.parent.name for path in root.glob(f"submitted/*/{assignment}"))
    if not students:
        where = root / "submitted" / "STUDENT" / assignment
        raise CourseError(f"nothing is collected: no folder {where} (first: nbgrader collect {assignment})")
    with api.gradebook as gradebook:
        known = assignment in {one.name for one in gradebook.assignments}
    if not known or not list((root / "release" / assignment).glob("*.ipynb")):
        say(f"generate  {assignment}")
        demand(api.generate_assignment(assignment), f"generating {assignment}")
    return _finish(api, assignment, students, plan or Plan(), say)


def _finish(api: Any, assignment: str, students: list[str], plan: Plan, say: Say) -> Graded:
    work = Path(api.coursedir.root)
    results = batch.run(api, assignment, students, plan, say)
    graded = Graded(results, _export(api, assignment, work), work)
    (work / f"{assignment}-summary.txt").write_text(summary(graded, few=len(results)) + "\n", encoding="utf-8")
    return graded


def summary(graded: Graded, few: int = _FEW) -> str:
    """The table of all submissions; then, for up to `few` of them, each repair and each point lost with its reason."""
    width = max([len("student"), *(len(result.student) for result in graded.results)])
    lines = [f"{'student':<{width}}  score    max  by hand  note"]
    for result in graded.results:
        by_hand = f"{result.by_hand:g}" if result.by_hand else "-"
        row = f"{result.student:<{width}}  {result.score:5g}  {result.max_score:5g}  {by_hand:>7}  {_note(result)}"
        lines.append(row.rstrip())
    if len(graded.results) > few:
        return "\n".join(lines)
    for result in graded.results:
        if result.repairs:
            lines += ["", f"{result.student}, when it was collected:", *(f"  {line}" for line in result.repairs)]
        if result.lost and not result.problem:
            lines += ["", f"{result.student} lost:", *(f"  {note}" for note in result.stopped)]
            for cell in result.lost:
                reason = _one_line(cell.reason)
                lines.append(f"  {cell.score:g} of {cell.points:g}  {cell.name}: {reason}")
    return "\n".join(lines)


def _note(result: Result) -> str:
    """Why a submission has the score that it has, in a few words."""
    if result.problem:
        return f"not graded: {_one_line(result.problem)}"
    repaired = f"{len(result.repairs)} put right" if result.repairs else ""
    lost = result.lost
    if not lost:
        return "; ".join(filter(None, ["every test passed", repaired]))
    why = next((cell for cell in lost if cell.reason), lost[0])
    words = f"lost points in {len(lost)} cell{'s' if len(lost) > 1 else ''}, {why.name}: {_one_line(why.reason, 80)}"
    return "; ".join(filter(None, [words, repaired]))


def _hand_in(api: Any, assignment: str, student: str, submission: Path, work: Path) -> None:
    """What a learner's `nbgrader submit` does, in the learner's name."""
    desk = work / "learners" / student
    shutil.rmtree(desk, ignore_errors=True)
    shutil.copytree(submission, desk / assignment)
    before = api.coursedir.assignment_id, api.coursedir.student_id
    api.coursedir.assignment_id, api.coursedir.student_id = assignment, student
    try:
        submit = api.exchange.Submit(coursedir=api.coursedir, authenticator=api.authenticator, parent=api)
        submit.assignment_dir = str(desk)
        submit.start()
    finally:
        api.coursedir.assignment_id, api.coursedir.student_id = before


def _export(api: Any, assignment: str, work: Path) -> Path:
    """nbgrader's CSV export of this assignment."""
    from nbgrader.plugins import CsvExportPlugin

    path = work / f"{assignment}.csv"
    with api.gradebook as gradebook:
        CsvExportPlugin(parent=api, to=str(path), assignment=[assignment]).export(gradebook)
    return path


def _one_line(reason: str, length: int = 150) -> str:
    text = "; ".join(line.strip() for line in reason.splitlines() if line.strip()) or "less than full marks"
    return text if len(text) <= length else f"{text[:length]}..."
