"""`python -m autograder init`: a course to begin with, whose tests are proved before anybody gets it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from ps3_course import ROOT

from autograder.__main__ import main
from autograder.course import exchange
from autograder.term import new

OWN = ("c.CourseDirectory.course_id = ", "c.Points.bonus = ")  # lines in which courses differ


def test_a_new_course_is_closed_to_others_and_its_exchange_open_to_all(tmp_path: Path) -> None:
    new.make(tmp_path / "trial")
    assert stat.S_IMODE((tmp_path / "trial").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "trial-exchange").stat().st_mode) == 0o1777
    assert exchange.problems(tmp_path / "trial") == []


def test_the_exchange_may_be_elsewhere(tmp_path: Path) -> None:
    new.make(tmp_path / "trial", tmp_path / "srv" / "exchange")
    assert f'c.Exchange.root = "{tmp_path}/srv/exchange"\n' in (tmp_path / "trial/nbgrader_config.py").read_text()
    assert (tmp_path / "srv/exchange").is_dir()
    assert not (tmp_path / "trial-exchange").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"autograder: {tmp_path} exists and is not empty: name a new folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_exchange_inside_the_course_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "c"), "--exchange", str(tmp_path / "c" / "exchange")]) == 2
    assert "would lie in the course folder, which learners must not enter" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_its_configuration_is_that_of_this_course_but_for_its_name_and_its_bonus() -> None:
    def settings(path: Path) -> list[str]:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if not line.startswith(OWN)]

    assert settings(new.TEMPLATE / "nbgrader_config.py") == settings(ROOT / "exercises/nbgrader_config.py")


@pytest.mark.slow
def test_its_tests_catch_every_mistake_of_its_bank_and_its_hints_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new.make(tmp_path / "trial")
    status = main(["prove", "warmup", "--course", str(tmp_path / "trial"), "--seed", "1"])
    out = capsys.readouterr().out
    assert status == 0, out
    assert "6 wrong and 3 right solutions, 3 others: none not as it should be" in out
