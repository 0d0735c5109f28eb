"""`python -m autograder grade ASSIGNMENT`: a class's collected submissions, or those that a course carries.

generate, release, submit, collect, autograde, feedback and export are nbgrader's; this file orders them, does only what
a change asks for, and tells what happened. What it leaves is an ordinary course directory that formgrader opens.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.batch import batch
from autograder.batch.batch import Plan
from autograder.batch.scores import Result
from autograder.commands import options
from autograder.course import CONFIG
from autograder.course.course import Course, CourseError, check_switched_on, demand, fingerprint, open_nbgrader
from autograder.intake.dropped import dropped
from autograder.intake.text import clip, visible
from autograder.proof import release

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI

Say = Callable[[str], None]
WORK = Path("build") / "grading"
NOT_GRADED = 3  # exit status: no score is wrong, but something could not be graded
_FEW = 12  # submissions for which the summary tells every lost point


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "grade",
        help="grade a class, or the submissions that the repository carries",
        description="With --course: grade all submissions that nbgrader collected in that course directory "
        "(submitted/STUDENT/ASSIGNMENT). Without: release the assignment, collect the sample submissions in "
        "exercises/submissions/ASSIGNMENT and grade them, in build/grading. Learners' code runs in a sandbox, or not "
        "at all. Writes feedback, a CSV file, a summary and telemetry. Only what is new or changed is graded; after an "
        "interrupt the same command goes on where it stopped; grades given by hand stay. Exit status 3: a submission "
        "could not be graded because of this machine or the cluster; it has no score from this run, and the next run "
        "tries it again.",
    )
    command.add_argument("assignment", help="for example ps3_quantization")
    command.add_argument("--course", type=Path, metavar="FOLDER", help="an nbgrader course directory with submissions")
    options.add_jobs(command)
    command.add_argument("--scheduler", default="", metavar="ADDRESS", help="grade on a Dask cluster: tcp://host:8786")
    command.add_argument("--no-feedback", action="store_true", help="write no feedback pages")
    command.add_argument("--force", action="store_true", help="do everything again, also what has not changed")
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    work = arguments.course or WORK
    plan = Plan(arguments.jobs, arguments.scheduler, arguments.force, not arguments.no_feedback)
    say = lambda text: print(text, flush=True)
    try:
        if arguments.course:
            graded = grade_class(arguments.course, arguments.assignment, plan, say)
        else:
            graded = grade(Course(options.COURSE), arguments.assignment, WORK, plan, say)
    except KeyboardInterrupt:
        print("\nautograder: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    root = " --allow-root" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    jupyter = os.path.relpath(Path(sys.executable).parent / "jupyter", work)
    print(f"\n{summary(graded)}\n")
    print(f"grades:     {graded.csv}")
    if plan.feedback:
        print(f"feedback:   {graded.work / 'feedback'}")
    print(f"in detail:  {graded.work / f'{arguments.assignment}-summary.txt'}")
    print(f"formgrader: cd {work} && {jupyter} lab{root}   (then the menu Nbgrader, Formgrader)")
    if left := [result.student for result in graded.results if result.ungraded]:
        names = ", ".join(left[:_FEW]) + (f" and {len(left) - _FEW} more" if len(left) > _FEW else "")
        print(f"autograder: {len(left)} not graded; the same command tries them again: {names}", file=sys.stderr)
        return NOT_GRADED
    return 0


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
    `Result.problem` or `Result.ungraded` and does not stop the others. Raises CourseError for what is wrong with the
    assignment itself.
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
    gone = dropped(root)
    students = sorted(name for path in root.glob(f"submitted/*/{assignment}") if (name := path.parent.name) not in gone)
    if not students:
        where = root / "submitted" / "STUDENT" / assignment
        raise CourseError(f"nothing is collected: no folder {where} (first: nbgrader collect {assignment})")
    from autograder.course.gradebook import open_gradebook

    with open_gradebook(api.coursedir) as gradebook:
        known = assignment in {one.name for one in gradebook.assignments}
    if not known or not list((root / "release" / assignment).glob("*.ipynb")):
        say(f"generate  {assignment}")
        demand(api.generate_assignment(assignment), f"generating {assignment}")
    return _finish(api, assignment, students, plan or Plan(), say)


def _finish(api: NbGraderAPI, assignment: str, students: list[str], plan: Plan, say: Say) -> Graded:
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
        score = "-" if result.total is None else f"{result.total:g}"
        row = f"{result.student:<{width}}  {score:>5}  {result.max_score:5g}  {by_hand:>7}  {_note(result)}"
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
    if result.ungraded:
        kept = "" if result.score is None else "; the earlier grade stands"
        return f"not graded: {_one_line(result.ungraded)}{kept}"
    late = f"{result.penalty:g} taken off for lateness" if result.penalty else ""
    if result.problem:
        return "; ".join(filter(None, [f"counts as not answered: {_one_line(result.problem)}", late]))
    told = f"{len(result.repairs)} to read below" if result.repairs else ""
    lost = result.lost
    if not lost:
        return "; ".join(filter(None, ["every test passed", late, told]))
    why = next((cell for cell in lost if cell.reason), lost[0])
    words = f"lost points in {len(lost)} cell{'s' if len(lost) > 1 else ''}, {why.name}: {_one_line(why.reason, 80)}"
    return "; ".join(filter(None, [words, late, told]))


def _hand_in(api: NbGraderAPI, assignment: str, student: str, submission: Path, work: Path) -> None:
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


def _export(api: NbGraderAPI, assignment: str, work: Path) -> Path:
    """nbgrader's table of this assignment."""
    from autograder.batch.export import Grades
    from autograder.course.gradebook import open_gradebook

    path = work / f"{assignment}.csv"
    with open_gradebook(api.coursedir) as gradebook:
        Grades(parent=api, to=str(path), assignment=[assignment]).export(gradebook)
    return path


def _one_line(reason: str, length: int = 150) -> str:
    text = "; ".join(line.strip() for line in reason.splitlines() if line.strip()) or "less than full marks"
    return clip(visible(text), length)
