"""One graded course directory for all tests of the grading path: starting kernels is what takes the time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ps3_course import CHATTY, HARD_CODED, PS3, ROOT, GradedCourse, write_submission

from autograder.commands.grade import grade
from autograder.course.course import Course
from autograder.sandbox import warm_kernels
from autograder.sandbox.launch import SandboxError


@pytest.fixture(scope="session")
def course_copy() -> Callable[[Path], Course]:
    """Copies the repository's course without its submissions."""

    def copy(folder: Path) -> Course:
        (folder / "source").mkdir(parents=True)
        shutil.copy(ROOT / "exercises/nbgrader_config.py", folder)
        shutil.copytree(ROOT / "exercises/source" / PS3, folder / "source" / PS3)
        return Course(folder)

    return copy


@pytest.fixture(scope="session")
def graded_course(tmp_path_factory: Any, course_copy: Callable[[Path], Course]) -> GradedCourse:
    """The repository's three submissions and four more, graded."""
    folder = tmp_path_factory.mktemp("graded")
    course = course_copy(folder / "exercises")
    handed_in = course.root / "submissions" / PS3
    shutil.copytree(ROOT / "exercises/submissions" / PS3, handed_in)
    write_submission(handed_in / "hard-coded", HARD_CODED)
    write_submission(handed_in / "chatty", CHATTY)
    (handed_in / "not-json").mkdir()
    (handed_in / "not-json" / f"{PS3}.ipynb").write_text('{"cells": [', encoding="utf-8")
    write_submission(handed_in / "renamed", {}).rename(handed_in / "renamed" / "my homework.ipynb")
    said: list[str] = []
    work = folder / "grading"
    return GradedCourse(course, work, grade(course, PS3, work, say=said.append), said)


@pytest.fixture(scope="module")
def forked_kernels() -> Iterator[None]:
    """Forked kernels for a whole file of tests, where that is possible: the same sandbox, sooner."""
    try:
        with warm_kernels.fork_server(("numpy",)):
            yield
    except SandboxError as error:
        pytest.skip(f"no sandbox works here: {error}")
