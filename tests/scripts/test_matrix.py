"""`make test-matrix`: each supported version that is there is tested, and the others are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matrix
import pytest

HERE = "{}.{}".format(*sys.version_info)


def test_the_versions_are_those_that_the_course_supports() -> None:
    assert matrix.versions() == ["3.11", "3.12", "3.13"]


def test_a_version_that_is_not_there_is_named_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {"3.11": "passed", "3.12": matrix.NOT_FOUND, "3.13": "passed"}
    monkeypatch.setattr(matrix, "outcome", lambda version, _: outcomes[version])
    assert matrix.main() == 0
    assert capsys.readouterr().out.split("\n")[1:4] == [
        "Python 3.11: passed",
        "Python 3.12: not found on this machine",
        "Python 3.13: passed",
    ]


@pytest.mark.parametrize("text", ["failed (pytest's exit status 1)", "could not be set up"])
def test_a_version_that_fails_makes_the_command_fail(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(matrix, "outcome", lambda version, _: text if version == "3.12" else "passed")
    assert matrix.main() == 1


def test_an_installed_version_is_found_and_one_that_does_not_exist_is_not() -> None:
    found = matrix.find(HERE)
    assert found is not None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"Python {HERE}.")
    assert matrix.find("3.99") is None


def test_the_environments_own_version_uses_it_and_others_get_one_beside_it() -> None:
    assert matrix.environment_of(HERE) == Path(sys.prefix)
    assert matrix.environment_of("3.99") == matrix.setup.ROOT / ".venv-3.99"
