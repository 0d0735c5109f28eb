"""Runs the quick part of the tests under each Python that the course supports and this machine has.

    python scripts/matrix.py     further words are options of pytest, such as -x

Quick are the tests that are not marked slow and need neither model, browser nor GPU. The environment's own Python uses
that environment; another version gets one of its own beside it, such as .venv-3.12. Exit status 1: a version failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import setup

QUICK = "not slow and not model and not browser and not gpu"
NOT_FOUND = "not found on this machine"


def versions() -> list[str]:
    (major, first), (_, last) = setup.SUPPORTED
    return [f"{major}.{minor}" for minor in range(first, last + 1)]


def find(version: str) -> str | None:
    """The interpreter of this version; uv knows where systems, pyenv, conda and the Windows registry keep them."""
    command = [sys.executable, "-m", "uv", "python", "find", "--system", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.strip() or None if found.returncode == 0 else None


def environment_of(version: str) -> Path:
    """Where this version's packages are: in .venv, if that is of this version."""
    own = "{}.{}".format(*sys.version_info) == version
    return Path(sys.prefix) if own else setup.ROOT / f".venv-{version}"


def outcome(version: str, options: list[str]) -> str:
    """Set one version up and run the quick tests with it: 'passed', 'not found ...' or what failed."""
    python = find(version)
    if python is None:
        return NOT_FOUND
    environment = environment_of(version)
    settings = os.environ | {"COURSE_VENV": str(environment)}
    if subprocess.run([python, "scripts/setup.py", "dev"], cwd=setup.ROOT, env=settings).returncode:
        return "could not be set up"
    tests = ["-m", "pytest", "-n", "auto", "--dist", "loadfile", "-m", QUICK, *options]
    bin_folder = environment / setup.BIN.name
    done = subprocess.run([bin_folder / setup.PYTHON.name, *tests], cwd=setup.ROOT, env=settings)
    return "passed" if done.returncode == 0 else f"failed (pytest's exit status {done.returncode})"


def main() -> int:
    outcomes = {version: outcome(version, sys.argv[1:]) for version in versions()}
    print("\n" + "\n".join(f"Python {version}: {text}" for version, text in outcomes.items()))
    return 0 if set(outcomes.values()) <= {"passed", NOT_FOUND} else 1


if __name__ == "__main__":
    sys.exit(main())
