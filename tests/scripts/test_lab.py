"""`scripts/lab.py`: what opens JupyterLab with make, on Windows without it, and in a conda environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lab
import pytest
from jupyterlab.labapp import LabApp


@pytest.fixture
def release(tmp_path: Path) -> Path:
    for name in ("ps1/ps1.ipynb", "ps1/figure.png", "ps2/ps2.ipynb"):
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("released")
    return tmp_path / "release"


def test_every_released_file_is_copied_into_work(tmp_path: Path, release: Path) -> None:
    lab.fill(tmp_path / "work", release)
    copied = {path.relative_to(tmp_path / "work").as_posix() for path in (tmp_path / "work").rglob("*.*")}
    assert copied == {"ps1/ps1.ipynb", "ps1/figure.png", "ps2/ps2.ipynb"}


def test_a_learners_own_file_is_kept_and_a_missing_one_beside_it_comes_back(tmp_path: Path, release: Path) -> None:
    (tmp_path / "work/ps1").mkdir(parents=True)
    (tmp_path / "work/ps1/ps1.ipynb").write_text("solved")
    lab.fill(tmp_path / "work", release)
    assert (tmp_path / "work/ps1/ps1.ipynb").read_text() == "solved"
    assert (tmp_path / "work/ps1/figure.png").read_text() == "released"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that setup.py has not made, as conda's is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "conda"))
    monkeypatch.setattr(sys, "argv", ["lab.py", "--no-browser"])
    monkeypatch.setenv("PATH", os.environ["PATH"])
    (tmp_path / "notebooks").mkdir()
    for name in ("01_second.ipynb", "00_first.ipynb", "drafts.ipynb"):
        (tmp_path / "notebooks" / name).write_text("{}")
    return tmp_path / "conda"


def test_it_opens_the_first_lesson_in_an_environment_that_it_has_made_ready(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    fetched: list[Any] = []
    monkeypatch.setattr(LabApp, "launch_instance", started.append)
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: fetched.append(command[1:]) or SimpleNamespace(returncode=0)
    )
    assert lab.main() == 0
    assert fetched == [["-m", "reference_impl", "fetch-model"]]
    assert "--LabApp.default_url=/lab/tree/notebooks/00_first.ipynb" in started[0]
    assert started[0][-1] == "--no-browser"
    assert (environment / "share/jupyter/labextensions/llm-serving-course/static").is_dir()
    assert '"fetchNews": "false"' in (environment / "share/jupyter/lab/settings/overrides.json").read_text()


def test_without_the_model_it_stops(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    monkeypatch.setattr(LabApp, "launch_instance", lambda _: pytest.fail("JupyterLab was started"))
    assert lab.main() == 1
