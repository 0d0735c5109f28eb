"""Releases feedback only where it tells the grades as they are now (switched on by `collect.use`)."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from nbgrader.api import MissingEntry
from nbgrader.exchange.default import ExchangeReleaseFeedback

from autograder.course.gradebook import open_gradebook
from autograder.course.points import Points

_STATE = re.compile(r'<meta name="state-of-grades" content="([0-9a-f]+)">')
_FEW = 5  # names in one message


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's `release_feedback`, which refuses pages that are older than the grades."""

    def copy_files(self) -> None:
        """Copy the pages into the exchange. Fails, naming the students and the command to run, if any page is old."""
        if old := self._old():
            names = ", ".join(old[:_FEW]) + (f" and {len(old) - _FEW} more" if len(old) > _FEW else "")
            assignment = self.coursedir.assignment_id
            self.fail(
                f"nothing was released: the feedback of {names} is older than the grades; "
                f"run `nbgrader generate_feedback {assignment}` first"
            )
        before = self.coursedir.student_id_exclude
        if others := self._from_elsewhere():
            where = f"{self.coursedir.feedback_directory}/STUDENT/{self.coursedir.assignment_id}"
            self.log.warning(
                "not released, since it was not handed in through the exchange: the feedback of %s (it is in %s)",
                ", ".join(others), where,
            )  # fmt: skip
            self.coursedir.student_id_exclude = ",".join(filter(None, [before, *others]))
        try:
            super().copy_files()
        finally:
            self.coursedir.student_id_exclude = before

    def _from_elsewhere(self) -> list[str]:
        """Students whose work came from Canvas, say: the exchange has no secret by which they could fetch a page."""
        excluded = set((self.coursedir.student_id_exclude or "").split(","))
        found = set()
        for folder in {Path(page).parent for page in glob.glob(f"{self.src_path}/*.html")}:
            if folder.parent.name in excluded:
                continue
            if (folder / "submission_secret.txt").is_file():
                (folder / "timestamp.txt").touch()  # nbgrader reads it, if only for its log
            else:
                found.add(folder.parent.name)
        return sorted(found)

    def _old(self) -> list[str]:
        """Students whose page does not tell the grades as they are now."""
        points, course, old = Points(parent=self), self.coursedir, set()
        excluded = set((course.student_id_exclude or "").split(","))
        with open_gradebook(course) as gradebook:
            for page in map(Path, glob.glob(f"{self.src_path}/*.html")):
                student = page.parent.parent.name
                if student in excluded:
                    continue
                graded = course.format_path(course.autograded_directory, student, course.assignment_id)
                try:
                    notebook = gradebook.find_submission_notebook(page.stem, course.assignment_id, student)
                except MissingEntry:
                    continue
                now = points.state(notebook, Path(graded) / f"{page.stem}.ipynb")
                found = _STATE.search(page.read_text(encoding="utf-8")[:2000])
                if found is None or found[1] != now:
                    old.add(student)
        return sorted(old)
