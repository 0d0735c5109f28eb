"""A constant is changed in one place: every page that prints what follows from it changes, or the build stops."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from site_tools import BOOK, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# What follows from the 3.35 TB/s of the H100, as pages print it, and what it is at 3.55 TB/s: 8,030,261,248 parameters
# of two bytes are 16.0605 GB; 989.5e12 FLOP/s over 3.55e12 bytes/s is 278.7; 24.6505 GB is a step of batch 32.
OLD = {"3.35 TB/s", "4.794", "208.6", "295.4", "7.358"}
NEW = {"3.55 TB/s", "4.524", "221.0", "278.7", "6.944"}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of everything that the site is made from, with another bandwidth for the H100."""
    root = tmp_path_factory.mktemp("changed")
    leave_out = shutil.ignore_patterns("_build", "node_modules", "__pycache__", "*.safetensors")
    for name in ("book", "notebooks", "reference_impl", "interactives", "autograder"):
        shutil.copytree(ROOT / name, root / name, ignore=leave_out)
    for name in ("practice", "source"):
        shutil.copytree(ROOT / "exercises" / name, root / "exercises" / name)
    for name in ("CONTRIBUTING.md", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    for name in ("book", "interactives"):
        (root / name / "node_modules").symlink_to(ROOT / name / "node_modules")
    hardware = root / "reference_impl" / "bounds" / "hardware.py"
    text = hardware.read_text()
    assert text.count("3.35e12") == 1
    hardware.write_text(text.replace("3.35e12", "3.55e12"))
    return root


def run(root: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run(list(map(str, command)), cwd=root, env=environment, capture_output=True, text=True)


def pages_with(site: Path, numbers: set[str]) -> dict[str, set[str]]:
    """Pages that print one of the numbers. Lessons and problem sets have tests of their own, practice its inputs."""
    found = {}
    for file in site.rglob("*.html"):
        name = file.relative_to(site).as_posix()
        if not name.startswith(("notebooks/", "practice/", "problem_sets", "_static/")):
            text = re.sub(r"<svg.*?</svg>", "", file.read_text("utf-8"), flags=re.S)  # coordinates are no numbers
            if here := {number for number in numbers if re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text)}:
                found[name] = here
    return found


def test_every_page_that_prints_a_number_follows_the_constant_behind_it(changed: Path, site: Path) -> None:
    build = changed / "book" / "build.py"
    stopped = run(changed, sys.executable, build, "--draft")
    assert stopped.returncode == 1  # the figures' bundles still have the old one
    assert "the figures hold other constants than reference_impl" in stopped.stderr

    assert run(changed, sys.executable, "-m", "interactives.generate").returncode == 0
    done = run(changed, sys.executable, build, "--draft")
    assert done.returncode == 0, done.stderr

    before = pages_with(site, OLD)
    assert {"index.html", "formulas.html", "glossary.html"} <= set(before)
    assert set.union(*before.values()) == OLD
    after = pages_with(changed / "book" / "_build" / "html", NEW)
    assert {name: len(numbers) for name, numbers in after.items()} == {n: len(numbers) for n, numbers in before.items()}
    assert pages_with(changed / "book" / "_build" / "html", OLD) == {}

    quizzes = changed / "book" / "_build" / "html" / "_static" / "course" / "quizzes.json"
    assert '"shown": "221.0"' in quizzes.read_text("utf-8")
    assert '"shown": "208.6"' not in quizzes.read_text("utf-8")
    assert (BOOK / "_build") not in quizzes.parents
