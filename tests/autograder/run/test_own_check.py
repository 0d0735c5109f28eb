"""`python -m autograder check`: what a learner reads when something of theirs fails."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from small_course import code, write

from autograder.__main__ import main
from autograder.course.course import CourseError
from autograder.run.own_check import check as check_module
from autograder.run.own_check.check import check

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
DIES = "\ndef dies(x):\n    import os\n    os._exit(1)"
HANGS = "\ndef hangs(x):\n    while True:\n        pass"
STUB = "def stub(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(copy.deepcopy(cells)), "metadata": {"kernelspec": KERNEL}, "nbformat": 4, "nbformat_minor": 5}


def answer(source: str, name: str) -> dict[str, Any]:
    return code(source, name, solution=True, locked=False)


def sees(source: str, name: str, points: int = 1) -> dict[str, Any]:
    return code(source, name, grade=True, points=points)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One notebook with every kind of mistake: what is said of each cell, by its name; a kernel takes its time."""
    import contextlib
    import io

    cells = [
        code("from autograder.checks import check_equal, check_raises", "imports"),
        answer("def double(x):\n    return 2 * x", "double"),
        answer("def half(x):\n    y = x - x\n    return x / y", "half"),
        answer(STUB, "stub"),
        answer("def third(x)\n    return x / 3", "third"),
        answer("def dented(x):\n    y = x\n  return y", "dented"),
        answer("def nothing(x):\n    pass" + DIES + HANGS, "others"),
        sees("given = (4,)\ncheck_equal(half(*given), 2)", "test-half"),
        sees("assert double(3) == 6", "test-double", points=2),
        sees("assert double(3) == 7", "test-assertion"),
        sees("check_equal(stub(1), 1)", "test-stub"),
        sees("check_raises(ValueError, stub, -1)", "test-stub-refuses"),
        sees("assert third(3) == 1", "test-third"),
        sees("# Test\na, b = nothing(1)", "test-nothing"),
        sees("dies(1)", "test-dies"),
        sees("assert double(4) == 8", "test-after-death", points=4),
        sees("hangs(1)", "test-hangs"),
        sees("assert double(5) == 10", "test-after-hanging", points=8),
    ]
    path = write(tmp_path_factory.mktemp("check") / "mine.ipynb", notebook(*cells))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = check(path, seconds=10)
    found = {"status": str(status), "all": out.getvalue()}
    name = ""
    for line in out.getvalue().splitlines():
        if line[:6] in ("FAIL  ", "ok    "):
            name = line[6:]
            found[name] = line[:4].strip()
        elif line.startswith("      "):
            found[name] += "\n" + line[6:]
    return found


def test_something_failed_so_the_status_is_1(said: dict[str, str]) -> None:
    assert said["status"] == "1"


def test_points_of_passed_tests_are_added_up(said: dict[str, str]) -> None:
    assert said["all"].endswith("\nThe tests that passed are worth 14 of 22 points.\n")


def test_an_error_in_a_function_is_told_with_its_line_and_the_input(said: dict[str, str]) -> None:
    assert said["test-half"].splitlines() == [
        "FAIL",
        "half raised ZeroDivisionError: division by zero (line 3 of its cell: return x / y)",
        "  for input: 4",
        "  called in line 2 of the test: check_equal(half(*given), 2)",
    ]


def test_a_bare_assertion_is_shown(said: dict[str, str]) -> None:
    assert said["test-assertion"] == "FAIL\nthis does not hold: assert double(3) == 7"


def test_a_stub_is_not_written_yet_in_each_of_its_tests(said: dict[str, str]) -> None:
    expected = "FAIL\nnot written yet: stub still holds `raise NotImplementedError()`"
    assert said["test-stub"] == said["test-stub-refuses"] == expected


def test_a_syntax_error_names_cell_line_and_text(said: dict[str, str]) -> None:
    assert said["third"] == "FAIL\nSyntaxError: expected ':' (line 1 of this cell: def third(x))"


def test_a_line_that_is_indented_like_no_other_is_named(said: dict[str, str]) -> None:
    what = "IndentationError: unindent does not match any outer indentation level"
    assert said["dented"] == f"FAIL\n{what} (line 3 of this cell: return y)"


def test_points_that_a_person_gives_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    essay = code("# your words", "essay", grade=True, solution=True, points=4)
    assert check(write(tmp_path / "mine.ipynb", notebook(essay, sees("assert True", "test")))) == 0
    said = "The tests that passed are worth 1 of 1 points. Written answers, read by a person, are worth 4 more.\n"
    assert capsys.readouterr().out.endswith(said)


def test_a_test_that_misses_a_name_points_to_the_cell_that_failed(said: dict[str, str]) -> None:
    words = said["test-third"]
    assert words.startswith("FAIL\nNameError: name 'third' is not defined (cell third raised SyntaxError: expected ':'")


def test_a_test_that_cannot_go_on_says_in_which_line(said: dict[str, str]) -> None:
    assert said["test-nothing"] == (
        "FAIL\nTypeError: cannot unpack non-iterable NoneType object "
        "(in line 2 of the test, which could not go on with what came back)"
    )


def test_after_a_kernels_death_the_next_tests_run_in_a_new_one(said: dict[str, str]) -> None:
    assert said["test-dies"].startswith("FAIL\nended its kernel")
    assert said["test-after-death"] == "ok"


def test_a_cell_that_hangs_is_stopped_and_named_with_its_line(said: dict[str, str]) -> None:
    kind, words = said["test-hangs"].splitlines()
    assert kind == "FAIL"
    assert words.startswith("hangs was stopped in line ")
    assert words.endswith("of its cell (pass): it did not end within 10 seconds") or "(while True:)" in words
    assert said["test-after-hanging"] == "ok"


def test_when_the_time_is_used_up_the_rest_is_not_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cells = [answer("while True: pass", "loop"), sees("assert True", "first"), sees("assert True", "second")]
    assert check(write(tmp_path / "mine.ipynb", notebook(*cells)), seconds=60, budget=1) == 1
    out, err = capfd.readouterr()
    assert err == ""
    assert "FAIL  loop\n      this cell was stopped in line 1" in out
    why = "      not run: the cells before took all of the 1 seconds for a notebook\n"
    assert f"FAIL  first\n{why}FAIL  second\n{why}" in out


def test_a_death_in_a_cell_of_the_learners_is_named_and_the_log_is_quiet(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cells = [answer("x = 1", "x"), answer("import os\nos._exit(3)", "leaves"), sees("assert x == 1", "test-x")]
    assert check(write(tmp_path / "mine.ipynb", notebook(*cells))) == 1
    out, err = capfd.readouterr()
    assert err == ""
    assert "FAIL  leaves\n      ended its kernel" in out
    assert "ok    test-x\n" in out


def test_a_notebook_without_tests_is_no_problem_set(tmp_path: Path) -> None:
    path = write(tmp_path / "lesson.ipynb", notebook(code("1 + 1")))
    with pytest.raises(CourseError, match=r"there is no test in .*lesson\.ipynb: it is not the notebook of a problem"):
        check(path)


def test_a_folder_is_named_as_one_with_the_notebooks_in_it(tmp_path: Path) -> None:
    write(tmp_path / "ps" / "ps.ipynb", notebook())
    with pytest.raises(CourseError, match=r"ps is a folder; name a notebook \(in this folder: ps\.ipynb\)"):
        check(tmp_path / "ps")


def test_no_test_gives_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(write(tmp_path / "lesson.ipynb", notebook(code("1 + 1"))))]) == 2
    assert "there is no test in" in capsys.readouterr().err


def test_the_time_for_a_cell_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(check_module, "check", lambda path, seconds, course: given.append((path, seconds)) or 0)
    assert main(["check", "mine.ipynb", "--timeout", "7"]) == 0
    assert main(["check", "mine.ipynb"]) == 0
    assert given == [(Path("mine.ipynb"), 7), (Path("mine.ipynb"), 60)]


@pytest.mark.parametrize("time", ["0", "-1", "soon"])
def test_a_time_that_makes_no_sense_gives_exit_2(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["check", "mine.ipynb", "--timeout", time])
    assert stop.value.code == 2
    assert f"{time!r} is no number of seconds" in capsys.readouterr().err


def test_a_missing_package_is_named_in_one_line_with_what_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "nbformat", None)  # as if it were not installed
    path = write(tmp_path / "mine.ipynb", notebook(sees("assert True", "test")))
    assert main(["check", str(path)]) == 2
    assert capsys.readouterr().err == (
        "autograder: this Python lacks the package nbformat; run .venv/bin/python -m autograder check ...\n"
    )
