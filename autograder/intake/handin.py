"""What nbgrader loads by name to take submissions in safely (switched on by `collect.use`)."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import BaseConverter
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.plugins.zipcollect import ExtractorPlugin
from nbgrader.preprocessors import NbGraderPreprocessor, OverwriteCells

from autograder.intake import archive, arrival, collect
from autograder.intake.owner import owned

_PREPARED: set[tuple[str, str]] = set()  # in this process
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PREPARED.clear)


def use(config: Any, root: Path) -> None:
    """Make nbgrader's commands pass through here, in `nbgrader_config.py`."""
    lock_conversions()
    config.Autograde.pre_convert_hook = hook(root)
    config.Autograde.sanitize_preprocessors = [
        "autograder.intake.handin.OnlyCanonical",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.DeduplicateIds",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "autograder.intake.handin.PutTestsBack",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.GenerateAssignment.post_convert_hook = after_generating(root)
    config.ExchangeFactory.collect = "autograder.intake.handin.SafeCollect"
    config.ZipCollectApp.extractor_plugin = "autograder.intake.handin.SafeExtractor"


def hook(root: Path) -> Callable[..., None]:
    """For nbgrader's `Autograde.pre_convert_hook`: makes each submission canonical before it is touched."""

    def before(assignment: str, student: str, notebooks: list[str]) -> None:
        del assignment, student  # nbgrader passes patterns here
        folder = Path(notebooks[0]).parent
        _PREPARED.discard((folder.name, folder.parent.name))
        try:
            report = collect.prepare(root, folder.name, folder.parent.name)
        except Exception:
            # nbgrader only logs a hook that failed, and gives 0 for a notebook that is missing; with none it stops.
            if not list(folder.glob("*.ipynb")):
                notebooks.clear()
            raise
        for line in report.doubts:
            logging.getLogger("nbgrader").warning("%s: %s", folder.parent.name, line)
        _PREPARED.add((folder.name, folder.parent.name))
        notebooks[:] = sorted(str(path) for path in folder.glob("*.ipynb"))

    return before


def after_generating(root: Path) -> Callable[..., None]:
    """For nbgrader's `GenerateAssignment.post_convert_hook`: keeps what learners are given."""

    def after(assignment: str, student: str, notebooks: list[str]) -> None:
        del student
        collect.remember_release(root, Path(notebooks[0]).parent.name if notebooks else assignment)

    return after


def is_prepared(assignment: str, student: str) -> bool:
    """Whether the hook made this submission canonical in this process; nbgrader only logs a hook that failed."""
    return (assignment, student) in _PREPARED


def lock_conversions() -> None:
    """Make nbgrader hold a submission while it autogrades it or writes its feedback, and take its name literally.

    nbgrader deletes a submission's earlier results before it calls any hook, so its own methods take the lock.
    """
    if getattr(BaseConverter.init_destination, "locks", False):
        return
    begin, convert = BaseConverter.init_destination, BaseConverter.convert_notebooks
    find = BaseConverter.init_notebooks

    def init_destination(self: Any, assignment: str, student: str) -> Any:
        if isinstance(self, (Autograde, GenerateFeedback)):
            self._owned.close()
            self._owned.enter_context(owned(Path(self.coursedir.root), assignment, student))
        return begin(self, assignment, student)

    def convert_notebooks(self: Any) -> None:
        with ExitStack() as self._owned:
            convert(self)

    def init_notebooks(self: Any) -> None:
        course = self.coursedir
        folder = Path(self._format_source(course.assignment_id, course.student_id))
        found = sorted(map(str, folder.glob(f"{course.notebook_id}.ipynb")))
        if found and isinstance(self, (Autograde, GenerateFeedback)):  # that very name is meant, such as [ab]
            self.assignments, self.notebooks = {str(folder): found}, []
        else:
            find(self)

    init_destination.locks = True  # type: ignore[attr-defined]
    BaseConverter.init_destination, BaseConverter.convert_notebooks = init_destination, convert_notebooks
    BaseConverter.init_notebooks = init_notebooks


class OnlyCanonical(NbGraderPreprocessor):
    """Let no notebook through that was not made canonical, for nbgrader only logs a hook that failed."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        about = resources["nbgrader"]
        if not is_prepared(about["assignment"], about["student"]):
            raise collect.CollectError(
                f"the submission of {about['student']} was not made canonical, so it is not run; the log says why"
            )
        return nb, resources


class PutTestsBack(OverwriteCells):
    """nbgrader's OverwriteCells, silent where it puts a test's hidden part back: that is no change of the learner's."""

    def report_change(self, name: str, attr: str, old: Any, new: Any) -> None:
        log = self.log.debug if attr == "checksum" else self.log.warning
        log("Attribute '%s' for cell %s has changed! (should be: %s, got: %s)", attr, name, old, new)


class SafeCollect(ExchangeCollect):
    """`nbgrader collect` that takes in plain files only and rebuilds the notebooks."""

    def copy_files(self) -> None:
        records: list[Any] = self.src_records  # type: ignore[has-type]
        if not records:
            super().copy_files()
        for record in records:  # each under its lock: an earlier submission is deleted before do_copy is called
            self.src_records = [record]
            with owned(Path(self.coursedir.root), self.coursedir.assignment_id, record["username"]):
                super().copy_files()

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        target = Path(dest)
        root, seen = Path(self.coursedir.root), arrival.arrival(Path(src))
        report = collect.prepare(root, target.name, target.parent.name, Path(src), seen)
        for line in [*report.refused, *report.repairs, *report.doubts]:
            self.log.warning("%s: %s", target.parent.name, line)


class SafeExtractor(ExtractorPlugin):
    """`nbgrader zip_collect` that unpacks plain files only, inside their folder, up to a size."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        for here, _, names in os.walk(archive_path):
            target = Path(extracted_path) / os.path.relpath(here, archive_path)
            target.mkdir(parents=True, exist_ok=True)
            for name in names:
                file = Path(here) / name
                if file.is_symlink() or not file.is_file():
                    self.log.warning("%s was refused: it is a link or no file", file)
                elif file.suffix in self.zip_ext:
                    folder = target / file.stem.removesuffix(".tar")
                    for line in archive.unpack(file, folder):
                        self.log.warning("%s: %s", name, line)
                else:
                    shutil.copyfile(file, target / name)
