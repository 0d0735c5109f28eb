"""`python -m autograder.sandbox`: a program contained, without nbgrader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "autograder.sandbox", *words], capture_output=True, text=True)


def test_a_program_runs_on_copies_of_its_files_and_its_output_and_status_come_out(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("6 7")
    code = "import sys; a, b = open('n.txt').read().split(); print(int(a) * int(b)); sys.stderr.write('!\\n'); exit(3)"
    done = run("--files", str(tmp_path), "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (3, "42\n")
    assert done.stderr == "!\nsandbox: it ended by itself, with exit status 3\n"


def test_a_limit_that_was_reached_is_named() -> None:
    done = run("--wall-seconds", "1", "--", sys.executable, "-c", "import time; time.sleep(60)")
    assert done.returncode != 0
    assert "sandbox: it was stopped because it ran for more than 1 seconds" in done.stderr


@pytest.mark.parametrize("module", ["nbgrader", "jupyter_client", "nbformat", "torch"])
def test_it_needs_nothing_of_jupyter(module: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; from autograder.sandbox.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "--", "/bin/echo", "hello"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
