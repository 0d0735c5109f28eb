"""A course's folder, and nbgrader as a library working in it.

A course is a folder with `nbgrader_config.py`, `source/ASSIGNMENT/*.ipynb` and, for a course that proves its graders,
`submissions/ASSIGNMENT/NAME/*.ipynb`. Grading never writes there: it works in a folder of its own, which holds a copy
of the configuration and is an ordinary nbgrader course directory.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

from autograder.course import CONFIG

# jsonschema's optional check of IRIs builds a grammar at import, seconds of CPU; it does without where this is missing.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class CourseError(Exception):
    """Something in the course or in the request is wrong; the message is one line that names what and where."""


class InfrastructureError(CourseError):
    """This machine or the cluster failed, not the course and not a submission; the same command may work later."""


@dataclass(frozen=True)
class Course:
    """The folder that holds `nbgrader_config.py`, `source/` and `submissions/`."""

    root: Path

    def assignments(self) -> list[str]:
        return sorted(path.parent.name for path in self.root.glob("source/*/*.ipynb"))

    def source(self, assignment: str) -> Path:
        """The assignment's source folder. Raises CourseError, naming the known assignments."""
        if not (self.root / CONFIG).is_file():
            raise CourseError(f"no course here: {self.root / CONFIG} is missing (run this in the repository's folder)")
        if assignment not in self.assignments():
            known = ", ".join(self.assignments()) or "none"
            raise CourseError(f"unknown assignment {assignment!r}; known: {known}")
        return self.root / "source" / assignment

    def submissions(self, assignment: str) -> dict[str, Path]:
        """Folder of each submission that the course carries, by name."""
        return {path.name: path for path in sorted((self.root / "submissions" / assignment).glob("*")) if path.is_dir()}


def fingerprint(*paths: Path) -> str:
    """A hash over the names and bytes of files and of all files in folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and ".ipynb_checkpoints" not in file.parts:
                name = str(file.relative_to(path))
                digest.update(f"{name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def load_config(root: Path) -> Config:
    """What a course's `nbgrader_config.py` sets, with the folder as it is now. Raises CourseError if there is none."""
    from traitlets.config import PyFileConfigLoader

    if not (root / CONFIG).is_file():
        raise CourseError(f"no course here: {root / CONFIG} is missing")
    config = PyFileConfigLoader(CONFIG, path=str(root.resolve())).load_config()
    config.CourseDirectory.root = str(root.resolve())
    return config


def open_nbgrader(course: Course, work: Path) -> NbGraderAPI:
    """nbgrader's API (`NbGraderAPI`) on the course directory `work`, made ready if need be; logs to `work`."""
    from nbgrader.apps import NbGraderAPI

    from autograder.course import exchange, gradebook

    gradebook.keep_between_submissions()
    work.mkdir(parents=True, exist_ok=True)
    if not work.samefile(course.root):
        shutil.copyfile(course.root / CONFIG, work / CONFIG)
    if (course.root / "hints").is_dir() and not work.samefile(course.root):
        shutil.copytree(course.root / "hints", work / "hints", dirs_exist_ok=True)
    config = load_config(work)
    config.NotebookExporter.optimistic_validation = True  # once after all steps instead of after each
    if config.Exchange.get("root"):
        exchange.make(Path(config.Exchange.root))

    log = logging.Logger("nbgrader")
    log.addHandler(logging.FileHandler(work / "nbgrader.log"))
    return NbGraderAPI(config=config, log=log)


def check_switched_on(api: NbGraderAPI, root: Path) -> None:
    """Raise CourseError, naming what is missing, unless the course's configuration sends learners' code to the sandbox.

    Grading could put that right for itself, but then formgrader's button in the same course would not be safe.
    """
    from autograder.course.kernelspec import KERNEL

    config, missing = api.config, []
    if config.Execute.get("kernel_name") != KERNEL:
        missing.append("c.Execute.kernel_name = kernelspec.ensure(root)")
    if not callable(config.Autograde.get("pre_convert_hook")):
        missing.append("collect.use(c, root)")
    if "autograder.execute.SandboxedExecute" not in (config.Autograde.get("autograde_preprocessors") or []):
        missing.append('c.Autograde.autograde_preprocessors = ["autograder.execute.SandboxedExecute", ...]')
    if missing:
        raise CourseError(f"{root / CONFIG} does not switch the sandbox on; it lacks: {'; '.join(missing)}")
    if "directory_structure" in config.CourseDirectory or "submitted_directory" in config.CourseDirectory:
        raise CourseError(f"{root / CONFIG}: folders are expected under nbgrader's own names (submitted/STUDENT/...)")


def demand(result: dict[str, Any], step: str) -> None:
    """Raise CourseError with nbgrader's own last words if a step of its API failed."""
    if not result["success"]:
        raise CourseError(f"{step} failed: {last_words(result)}")


def last_words(result: dict[str, Any]) -> str:
    """The line of nbgrader's log or error that says the most: the last exception that is not nbgrader's own."""
    lines = f"{result.get('error') or ''}\n{result.get('log') or ''}".splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    raised = [
        line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line) and "NbGraderException" not in line
    ]
    return (raised or lines or ["no reason was given"])[-1]
