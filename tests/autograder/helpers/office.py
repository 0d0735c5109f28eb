"""An instructor's office: a class on the small assignment, worked on with the commands that an instructor types."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from klass import PS, make_class
from small_course import answered, cell, write


class Office:
    """A course directory and the commands typed in it."""

    def __init__(self, root: Path, *students: str, config: str = "") -> None:
        self.root = root
        self.api = make_class(root)
        self.configure(config)
        for student in students:
            self.hand_in(student)

    def configure(self, text: str) -> None:
        with (self.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")

    def hand_in(self, student: str, late: timedelta | None = None, **answers: str) -> None:
        """Put a right submission with these other answers where nbgrader collects to; `late` after 1 May 2026, noon."""
        notebook = answered()
        for name, text in answers.items():
            cell(notebook, name)["source"] = text
        folder = self.root / "submitted" / student / PS
        write(folder / f"{PS}.ipynb", notebook)
        if late is not None:
            (folder / "timestamp.txt").write_text(f"{DUE + late:%Y-%m-%d %H:%M:%S} UTC")

    def nbgrader(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run("nbgrader", *words)

    def autograder(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run("autograder", *words)

    def grade_by_hand(self, student: str, points: float, comment: str = "", name: str = "essay") -> None:
        """What formgrader stores when a grader types points and a comment."""
        with self.api.gradebook as gradebook:
            grade = gradebook.find_grade(name, PS, PS, student)
            grade.manual_score, grade.needs_manual_grade = points, False
            if comment:
                gradebook.find_comment(name, PS, PS, student).manual_comment = comment
            gradebook.db.commit()

    def state(self, student: str, name: str = "essay") -> tuple[float, bool, str | None]:
        """Points, whether a grader is asked, and the comment at a cell."""
        with self.api.gradebook as gradebook:
            grade = gradebook.find_grade(name, PS, PS, student)
            return grade.score, grade.needs_manual_grade, gradebook.find_comment("essay", PS, PS, student).comment

    def due(self, extension: dict[str, timedelta] | None = None) -> None:
        """Set the due date to 1 May 2026, noon, and give extensions."""
        with self.api.gradebook as gradebook:
            gradebook.update_or_create_assignment(PS, duedate=DUE)
            for student, more in (extension or {}).items():
                gradebook.grant_extension(PS, student, minutes=more.total_seconds() // 60)

    def export(self, kind: str) -> dict[str, dict[str, str]]:
        """What `nbgrader export` writes, by student; `kind` is a plugin, or empty for the default."""
        path = self.root / "out.csv"
        plugin = [f"--exporter=autograder.export.{kind}"] if kind else []
        done = self.nbgrader("export", *plugin, f"--to={path}")
        assert done.returncode == 0, done.stderr
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        key = {"": "student_id", "PerQuestion": "student_id", "Canvas": "SIS Login ID", "Moodle": "Username"}[kind]
        return {line[key] or line.get("Student", "").strip(): line for line in lines}

    def page(self, student: str) -> str:
        return (self.root / "feedback" / student / PS / f"{PS}.html").read_text(encoding="utf-8")

    def edit(self, path: Path, change: Callable[[str], str]) -> None:
        path.chmod(0o644)
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment: dict[str, Any] = {**os.environ, "OMP_NUM_THREADS": "1", "JUPYTER_PATH": ""}
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.root, env=environment, capture_output=True, text=True, timeout=280,
        )  # fmt: skip


DUE = datetime(2026, 5, 1, 12, 0, tzinfo=UTC).replace(tzinfo=None)
