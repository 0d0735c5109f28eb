"""Grade every submission that the course carries: nbgrader's own steps, in a working course directory.

generate, release, submit, collect, autograde, feedback and export are nbgrader's; this file orders them, does only what
a change asks for, and tells what happened. What it leaves is an ordinary course directory that formgrader opens.

There is no sandbox yet, so nothing but the course's own `submissions/` is run, and no option says otherwise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import release
from .course import CONFIG, Course, demand, fingerprint, open_nbgrader
from .scores import Result, autograde, read

Say = Callable[[str], None]


@dataclass(frozen=True)
class Graded:
    """What a run leaves: one result for each submission, and where its files are."""

    results: list[Result]
    csv: Path
    work: Path


@dataclass
class _State:
    """What earlier runs did, kept beside the gradebook: hashes of what was released and of what was graded."""

    released: str
    graded: dict[str, str]
    problems: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> _State:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls("", {}, {})

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def grade(course: Course, assignment: str, work: Path, force: bool = False, say: Say = print) -> Graded:
    """Bring the gradebook in `work` up to date with the course's submissions of one assignment.

    Only what changed is done again, all of it with `force`. A submission that cannot be graded has its reason in
    `Result.problem` and does not stop the others. Raises CourseError for what is wrong with the assignment itself.
    """
    source = course.source(assignment)
    submissions = course.submissions(assignment)
    work.mkdir(parents=True, exist_ok=True)
    state_file = work / f"{assignment}.json"
    state = _State.load(state_file)

    version = fingerprint(source, course.root / CONFIG)
    if force or state.released != version:
        say(f"release   {assignment}: checking markers, leaks, the stub and the solution")
        release.prove(course, assignment)
    api = open_nbgrader(course, work)
    if force or state.released != version:
        release.generate(api, course, assignment)
        shutil.rmtree(Path(api.config.Exchange.root) / api.course_id / "outbound" / assignment, ignore_errors=True)
        demand(api.release_assignment(assignment), f"releasing {assignment}")
        state = _State(version, {}, {})
        state.save(state_file)

    hashes = {name: fingerprint(path) for name, path in submissions.items()}
    changed = [name for name in submissions if state.graded.get(name) != hashes[name]]
    for name in changed:
        _hand_in(api, assignment, name, submissions[name], work)
    if changed:
        say(f"collect   {len(changed)} new or changed of {len(submissions)} submissions")
        demand(api.collect(assignment, update=True), f"collecting {assignment}")
    for count, name in enumerate(changed, start=1):
        say(f"autograde [{count}/{len(changed)}] {name}")
        result = autograde(api, assignment, name)
        if not result.problem:
            demand(api.generate_feedback(assignment, name, force=True), f"feedback for {name}")
        state.problems[name] = result.problem
        state.graded[name] = hashes[name]
        state.save(state_file)

    results = [read(api, assignment, name, state.problems[name]) for name in submissions]
    return Graded(results, _export(api, assignment, work), work)


def summary(graded: Graded) -> str:
    """The table of all submissions, then each point lost with its reason."""
    width = max([len("student"), *(len(result.student) for result in graded.results)])
    lines = [f"{'student':<{width}}  score    max  by hand  note"]
    for result in graded.results:
        note = f"not graded: {result.problem}" if result.problem else ""
        if not note and result.lost:
            note = f"lost points in {len(result.lost)} cell{'s' if len(result.lost) > 1 else ''}"
        by_hand = f"{result.by_hand:g}" if result.by_hand else "-"
        lines.append(
            f"{result.student:<{width}}  {result.score:5g}  {result.max_score:5g}  {by_hand:>7}  {note}".rstrip()
        )
    for result in graded.results:
        if result.lost and not result.problem:
            lines += ["", f"{result.student} lost:", *(f"  {note}" for note in result.stopped)]
            for cell in result.lost:
                reason = _one_line(cell.reason)
                lines.append(f"  {cell.score:g} of {cell.points:g}  {cell.name}: {reason}")
    return "\n".join(lines)


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
