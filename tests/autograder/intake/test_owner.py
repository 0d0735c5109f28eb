"""A submission has one owner at a time, and taking it in survives a kill at any moment."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import killed_at
from small_course import answered, cell, released, write

from autograder.intake.collect import prepare
from autograder.intake.owner import owned


def state(course: Path) -> dict[str, bytes]:
    """What counts afterwards: the submission as it will be graded, what came in, and the manifest."""
    submitted = course / "submitted" / "ada"
    found = {path.relative_to(course).as_posix(): path for path in submitted.rglob("*") if path.is_file()}
    record = course / ".received" / "ps" / "ada"
    found |= {path.relative_to(course).as_posix(): path for path in record.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(found.items())}


def hand_in(folder: Path, answer: str) -> None:
    notebook = answered()
    cell(notebook, "double")["source"] = answer
    notebook["cells"].remove(cell(notebook, "test-two"))
    write(folder / "ps.ipynb", notebook)
    (folder / "data").mkdir()
    (folder / "data" / "x.txt").write_text(answer)


def first(course: Path) -> None:
    write(course / "release" / "ps" / "ps.ipynb", released())
    hand_in(course / "submitted" / "ada" / "ps", "first")


def after_a_new_release(course: Path) -> None:
    first(course)
    prepare(course, "ps", "ada")
    new = released()
    cell(new, "test-two")["source"] = "assert double(3) == 6"
    write(course / "release" / "ps" / "ps.ipynb", new)


def handed_in_again(course: Path) -> None:
    first(course)
    prepare(course, "ps", "ada")
    shutil.rmtree(course / "submitted" / "ada" / "ps")
    hand_in(course / "submitted" / "ada" / "ps", "second")


def collected_again(course: Path) -> None:
    first(course)
    prepare(course, "ps", "ada")
    hand_in(course / "exchange", "second")


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("begin", [first, after_a_new_release, handed_in_again, collected_again])
def test_killed_at_any_call_a_rerun_gives_the_same_bytes(
    tmp_path: Path, begin: Callable[[Path], None], emptied: bool
) -> None:
    def take_in(course: Path) -> None:
        source = course / "exchange"
        prepare(course, "ps", "ada", source if source.exists() else None, 1.7e9 if source.exists() else None)

    begin(tmp_path / "whole")
    take_in(tmp_path / "whole")
    right = state(tmp_path / "whole")
    assert any(name.endswith("manifest.json") for name in right)
    number = 1
    while True:
        course = tmp_path / f"{number}"
        begin(course)
        if not killed_at(number, course, emptied, lambda course=course: take_in(course)):
            break
        take_in(course)
        assert state(course) == right, f"killed before change {number}"
        shutil.rmtree(course)
        number += 1
    assert number >= 10


def test_nobody_else_gets_a_submission_that_is_owned(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def other() -> None:
        with owned(tmp_path, "ps", "ada"):
            os.write(writing, b"x")

    with owned(tmp_path, "ps", "ada"), owned(tmp_path, "ps", "ada"):
        child = os.fork()
        if child == 0:
            other()
            os._exit(0)
        os.set_blocking(reading, False)
        time.sleep(0.2)
        with pytest.raises(BlockingIOError):
            os.read(reading, 1)
        with owned(tmp_path, "ps", "grace"), owned(tmp_path, "other", "ada"):
            pass  # another submission is nobody's
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"x"


def test_many_processes_that_take_in_the_same_submission_leave_it_whole(tmp_path: Path) -> None:
    first(tmp_path)
    for number in range(100):
        (tmp_path / "submitted" / "ada" / "ps" / f"{number}.txt").write_text("x" * number)
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for turn in range(5):
                    new = released()
                    cell(new, "test-two")["source"] = f"assert double({number}) == {turn}"
                    write(tmp_path / f"{number}.ipynb", new)
                    os.replace(tmp_path / f"{number}.ipynb", tmp_path / "release" / "ps" / "ps.ipynb")  # a new release
                    report = prepare(tmp_path, "ps", "ada")
                    assert report.received["99.txt"]
                    assert "ps.ipynb" not in report.problems
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0, 0]
    notebook = json.loads((tmp_path / "submitted/ada/ps/ps.ipynb").read_text())
    assert cell(notebook, "double")["source"] == "first"
