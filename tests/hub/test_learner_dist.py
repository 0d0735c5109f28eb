"""The learner's distribution: complete enough to work with, and without a line that only an instructor may see."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHORTEST = 32  # characters of a line that says enough to be a secret

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make learner-dist` makes, here somewhere else."""
    target = tmp_path_factory.mktemp("dist") / "learner"
    code = f"import sys; sys.path.insert(0, 'scripts'); import learner_dist as d; d.build(d.Path({str(target)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return target


def lines(text: str) -> set[str]:
    """Its lines that are long enough to be told apart, without indentation."""
    return {line.strip() for line in text.splitlines() if len(line.strip()) >= SHORTEST}


def cells(path: Path) -> list[dict[str, object]]:
    return list(json.loads(path.read_text())["cells"])


def secret_parts(path: Path) -> Iterator[str]:
    """Solutions, hidden tests and model answers of a source notebook."""
    for cell in cells(path):
        text = "".join(cell["source"])  # type: ignore[arg-type]
        for name in ("SOLUTION", "HIDDEN TESTS"):
            yield from re.findall(rf"### BEGIN {name}\n(.*?)### END {name}", text, re.DOTALL)


def secrets() -> dict[str, set[str]]:
    """Lines that nobody but an instructor may read, by where they stand."""
    exercises = ROOT / "exercises"
    found = {str(path): lines("\n".join(secret_parts(path))) for path in exercises.glob("source/*/*.ipynb")}
    for pattern in ("bank/*/*/*.py", "bank/*/*.py", "instructor/*.md", "practice/*/solution.py", "hints/*.toml"):
        found |= {str(path): lines(path.read_text()) for path in exercises.glob(pattern)}
    return {where: {line for line in part if not line.startswith("# Written by")} for where, part in found.items()}


def public_lines() -> set[str]:
    """Lines that learners are given on purpose: released notebooks, lessons, and the packages' own source."""
    public: set[str] = set()
    for pattern in ("exercises/release/*/*.ipynb", "notebooks/*.ipynb"):
        for path in ROOT.glob(pattern):
            for cell in cells(path):
                public |= lines("".join(cell["source"]))  # type: ignore[arg-type]
    for package in ("reference_impl", "interactives", "autograder"):
        for path in (ROOT / package).rglob("*.py"):
            public |= lines(path.read_text())
    return public


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file of the distribution as text, those inside the wheel too; a notebook as its cells' sources."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                for name in wheel.namelist():
                    yield name, wheel.read(name).decode(errors="replace")
        elif path.suffix == ".ipynb":
            yield str(path), "\n".join("".join(cell["source"]) for cell in cells(path))  # type: ignore[arg-type]
        elif path.is_file():
            yield str(path), path.read_text(errors="replace")


def test_no_file_holds_a_line_of_a_solution_a_hidden_test_a_bank_or_a_rubric(distribution: Path) -> None:
    public = public_lines()
    secret = {line: where for where, found in secrets().items() for line in found - public}
    assert len(secret) > 1000  # there is something to look for
    shown = {name: secret[line] for name, text in texts(distribution) for line in lines(text) if line in secret}
    assert shown == {}


def test_it_holds_every_lesson_and_every_released_problem_set(distribution: Path) -> None:
    lessons = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    released = {path.name for path in (ROOT / "exercises" / "release").glob("*/*.ipynb")}
    assert {path.name for path in distribution.glob("lessons/*.ipynb")} == lessons
    assert {path.name for path in distribution.glob("problem_sets/*/*.ipynb")} == released
    assert (distribution / "README.md").is_file()
    assert distribution.with_suffix(".zip").is_file()


def test_a_problem_set_is_checked_in_a_fresh_environment_without_torch(distribution: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    (wheel,) = distribution.glob("*.whl")
    uv = Path(sys.executable).with_name("uv")
    install = [
        str(uv),
        "pip",
        "install",
        "--quiet",
        "--python",
        str(python),
        "-c",
        str(distribution / "constraints.txt"),
    ]
    subprocess.run([*install, f"llm-serving-course[problem-sets] @ {wheel.as_uri()}"], check=True)
    assert subprocess.run([python, "-c", "import torch"], capture_output=True).returncode != 0
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    notebook = distribution / "problem_sets" / "ps1_prefill_decode" / "ps1_prefill_decode.ipynb"
    checked = subprocess.run(
        [python, "-m", "autograder", "check", notebook], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert checked.returncode == 1, checked.stderr
    assert "not written yet: max_sequences still holds `raise NotImplementedError()`" in checked.stdout
    assert "The tests that passed are worth 0 of 56 points." in checked.stdout
