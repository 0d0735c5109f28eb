"""Several graders: each learner's written answers belong to one grader, for the whole term.

`graders.csv` of the course says who grades whom. Shares differ by one learner at most when they are made; learners who
join later go to the smallest share, and nobody changes the grader because somebody else joins or leaves.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from autograder.course.course import CourseError
from autograder.course.points import asks_again, grades
from autograder.intake.dropped import dropped

FILE = "graders.csv"  # in the course's folder: student,grader


@dataclass(frozen=True)
class Share:
    """A grader's learners, and how many of an assignment's written answers wait for that grader."""

    grader: str
    students: list[str]
    waiting: int


def divide(root: Path, gradebook: Gradebook, graders: Sequence[str] = ()) -> dict[str, str]:
    """Give each learner of the class a grader and write it down; returns grader by learner.

    `graders` are those of the whole class from now on: the learners of one who is no longer named are divided anew.
    Without any, those of the file go on. Raises CourseError if there are none.
    """
    path = root / FILE
    before: dict[str, str] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            before = {row["student"]: row["grader"] for row in csv.DictReader(file)}
    names = list(dict.fromkeys(graders)) or sorted(set(before.values()))
    if not names:
        raise CourseError("no graders are known: name them with --graders")
    present = sorted({student.id for student in gradebook.students} - dropped(root))
    kept = {student: before[student] for student in present if before.get(student) in names}
    size = Counter(dict.fromkeys(names, 0))
    size.update(kept.values())
    if graders and set(names) != set(before.values()):  # a new grader takes over from the largest shares
        each, left = divmod(len(present), len(names))
        most = {name: each + (rank < left) for rank, (name, _) in enumerate(size.most_common())}
        for student in present:
            if student in kept and size[kept[student]] > most[kept[student]]:
                size[kept.pop(student)] -= 1
    for student in present:
        if student not in kept:
            kept[student] = min(names, key=lambda name: size[name])
            size[kept[student]] += 1
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["student", "grader"], *sorted(kept.items())])
    return kept


def progress(gradebook: Gradebook, assignment: str, of: dict[str, str]) -> list[Share]:
    """Each grader's share of an assignment, in the order of their names."""
    waiting: Counter[str] = Counter()
    for student, grader in of.items():
        try:
            submission = gradebook.find_submission(assignment, student)
        except MissingEntry:
            continue
        waiting[grader] += sum(bool(one.needs_manual_grade) or asks_again(one) for one in grades(submission))
    return [
        Share(grader, sorted(student for student, name in of.items() if name == grader), waiting[grader])
        for grader in sorted(set(of.values()))
    ]
