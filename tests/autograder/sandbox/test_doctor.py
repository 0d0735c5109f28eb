"""The doctor: each limit of the sandbox is tried and holds here, and it tells the truth where one does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.__main__ import main
from autograder.commands import doctor
from autograder.sandbox import launch
from autograder.sandbox.probes import attempt as probing
from autograder.sandbox.probes import escapes
from autograder.sandbox.probes.escapes import Finding


@pytest.mark.parametrize("probe", doctor.PROBES, ids=lambda probe: probe.__name__)
def test_the_limit_holds(probe: Callable[[], Finding]) -> None:
    found = probe()
    assert found.held, f"{found.name}: {found.what}. {found.mend}"


@pytest.mark.parametrize("probe", [escapes.reads_no_file, escapes.reaches_no_network, escapes.environment_is_empty])
def test_the_probe_notices_when_there_is_no_sandbox(
    probe: Callable[[], Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that never fails proves nothing: run on the bare machine it must fail."""

    def bare(code: str, limits: object = None, **words: str) -> probing.Ran:
        for name, word in words.items():
            code = code.replace(name, repr(word))
        done = subprocess.run([sys.executable, "-c", probing.TRY + code], capture_output=True, text=True)
        return probing.Ran(done.stdout, done.returncode, "", 0.0, 0)

    monkeypatch.setattr(escapes, "_run", bare)
    assert not probe().held


def test_a_latex_folder_named_shadow_is_no_password_file_and_a_password_file_is_one_under_any_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs: list[str] = []

    def keep(code: str, limits: object = None, **words: str) -> probing.Ran:
        programs.append(code)
        return probing.Ran("nothing", 0, "", 0.0, 0)

    monkeypatch.setattr(escapes, "_run", keep)
    escapes.reads_no_file()
    names: dict[str, Any] = {"os": os, "CANARY": "canary"}
    exec(programs[0].partition("def look()")[0], names)
    latex = tmp_path / "texmf" / "shadow"
    latex.mkdir(parents=True)
    (latex / "shadow.sty").write_text("% shadow boxes: a package\n\\ProvidesPackage{shadow}[2003/02/19]\n")
    assert not names["secret"](str(latex), "shadow")
    (tmp_path / "shadow").write_text("daemon:*:19700:0:99999:7:::\n")
    assert names["secret"](str(tmp_path / "shadow"), "shadow")


def test_it_exits_0_when_all_hold_and_1_with_the_cure_when_one_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = Finding("one", True, "got nothing"), Finding("two", False, "got it all", "Lock the door")
    monkeypatch.setattr(doctor, "PROBES", [lambda: good])
    assert main(["doctor"]) == 0
    assert "ok    one: got nothing" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "PROBES", [lambda: good, lambda: bad])
    assert main(["doctor"]) == 1
    assert "FAIL  two: got it all\n      Lock the door\n\n1 of 2 limits hold." in capsys.readouterr().out


def test_it_looks_at_the_exchange_of_the_course(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "PROBES", [])
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "nbgrader_config.py").write_text(f"c = get_config()\nc.Exchange.root = {str(exchange)!r}\n")
    assert main(["doctor", "--course", str(tmp_path / "course")]) == 1
    assert f"FAIL  the exchange: {exchange} has mode 777, not 1777: chmod 1777 {exchange}" in capsys.readouterr().out
    exchange.chmod(0o1777)
    assert main(["doctor", "--course", str(tmp_path / "course")]) == 0
    assert "ok    the exchange: nobody can take it over" in capsys.readouterr().out


def test_without_bubblewrap_it_says_how_to_get_it_and_that_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "apt install bubblewrap" in said
    assert "Nothing of a learner's is run" in said


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_on_macos_and_windows_it_points_to_a_container_or_wsl(
    platform: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert doctor.main() == 1
    said = capsys.readouterr().out
    assert "docker run" in said
    assert "wsl --install" in said


def test_what_is_enforced_is_told_truly_without_a_control_group() -> None:
    words = "; ".join(launch.enforced(None))
    assert "cgroup v" not in words
    assert "setrlimit, their sum watched" in words
