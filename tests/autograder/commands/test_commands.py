"""The command line: its exit status and its words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from klass import PS, make_class
from ps3_course import PS3, ROOT

from autograder.__main__ import main


def test_help_lists_the_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(f"\n    {command} " in out for command in ("grade", "release", "check"))


def test_help_on_grade_says_that_learners_code_runs_in_a_sandbox(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    assert "Learners' code runs in a sandbox, or not at all" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_a_number_of_processes_that_makes_no_sense_gives_exit_2(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["grade", PS3, "--jobs", jobs])
    assert stop.value.code == 2
    assert f"{jobs!r} is no number of processes" in capsys.readouterr().err


def test_an_unknown_assignment_gives_exit_2_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["grade", "ps99"]) == 2
    assert capsys.readouterr().err.startswith("autograder: unknown assignment 'ps99'; known: ps1_prefill_decode, ")


def test_outside_the_repository_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["grade", PS3]) == 2
    assert "no course here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("{", "is not JSON"),
        ("[]", "not a notebook"),
        ('{"cells": 3}', "not a notebook"),
        (None, "is missing"),
    ],
)
def test_check_refuses_what_is_no_notebook(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | None, reason: str
) -> None:
    path = tmp_path / "mine.ipynb"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert main(["check", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("autograder: ")
    assert error.count("\n") == 1
    assert "mine.ipynb" in error
    assert reason in error


@pytest.mark.slow
def test_check_on_the_untouched_notebook_says_that_nothing_is_written_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(ROOT / "exercises/release" / PS3 / f"{PS3}.ipynb")]) == 1
    out = capsys.readouterr().out
    assert "FAIL  pack-order\n      not written yet" in out
    assert "worth 0 of 64 points" in out


@pytest.mark.slow
def test_check_on_a_right_notebook_gives_exit_0() -> None:
    path = ROOT / "exercises/submissions" / PS3 / "right" / f"{PS3}.ipynb"
    before = path.read_bytes()
    run = subprocess.run(
        [sys.executable, "-m", "autograder", "check", str(path)], cwd=ROOT, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "\nThe tests that passed are worth 64 of 64 points. Written answers" in run.stdout
    assert path.read_bytes() == before


AS_ON_WINDOWS = """
import os, runpy, sys
for module in ("fcntl", "resource", "termios"):
    sys.modules[module] = None
for name in ("fork", "killpg", "register_at_fork", "sched_getaffinity"):
    delattr(os, name)
sys.argv[0] = "autograder"
runpy.run_module("autograder", run_name="__main__")
"""


@pytest.mark.slow
def test_check_needs_no_module_that_windows_lacks() -> None:
    command = [sys.executable, "-c", AS_ON_WINDOWS, "check", f"exercises/release/{PS3}/{PS3}.ipynb"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1, "")
    assert "FAIL  pack-order\n      not written yet" in run.stdout


@pytest.mark.parametrize("command", ["release", "prove", "hints", "check", "diff", "doctor", "grade"])
def test_every_command_takes_the_folder_of_a_course(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--course FOLDER" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["release", PS3], ["prove", PS3], ["hints", PS3], ["prove"]])
def test_a_folder_without_a_course_gives_exit_2_and_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*words, "--course", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"autograder: no course here: {tmp_path / 'nbgrader_config.py'} is missing")
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["release", "prove", "hints"])
def test_a_missing_bubblewrap_gives_exit_3_and_one_line(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_class(tmp_path / "course")
    capsys.readouterr()
    monkeypatch.setenv("PATH", "/nowhere")
    assert main([command, PS, "--course", str(tmp_path / "course")]) == 3
    error = capsys.readouterr().err
    assert "bubblewrap" in error
    assert error.count("\n") == 1


def test_release_is_refused_while_learners_could_take_the_exchange_over(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_class(tmp_path / "course")
    exchange = tmp_path / "course-exchange"
    exchange.chmod(0o777)
    assert main(["release", PS, "--course", str(tmp_path / "course")]) == 2
    assert capsys.readouterr().err == (f"autograder: {exchange} has mode 777, not 1777: chmod 1777 {exchange}\n")
