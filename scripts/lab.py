"""Opens the first lesson in JupyterLab, whatever made the environment: `make lab`, Windows without make, or conda.

    python scripts/lab.py [--instructor]      further words are options of JupyterLab, such as --no-browser

Fetches the lessons' model and copies the problem sets into work/, which is the learner's own: nothing there is
overwritten. A learner sees neither instructors' tools nor the folders of the product; --instructor shows all. What
JupyterLab needs besides its package is put into the environment that runs this file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import setup

ROOT = setup.ROOT


def fill(work: Path, release: Path = ROOT / "exercises" / "release") -> None:
    """Copy into `work` every released file that it does not hold yet."""
    for path in release.rglob("*"):
        target = work / path.relative_to(release)
        if path.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def options() -> list[str]:
    """JupyterLab shows the whole course and opens the first notebook; it refuses to run as root unless told."""
    first = min((ROOT / "notebooks").glob("[0-9]*.ipynb")).name
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/notebooks/{first}", *as_root]


def hide_what_learners_do_not_need() -> None:
    """Adds the learners' settings to those that JupyterLab reads."""
    paths = [str(ROOT / "interactives" / "lab" / "learner"), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(path for path in paths if path)


def main() -> int:
    if subprocess.run([sys.executable, "-m", "reference_impl", "fetch-model"], cwd=ROOT).returncode:
        return 1  # it has said why
    fill(ROOT / "work")
    environment = Path(sys.prefix)
    setup.configure_jupyterlab(environment)
    setup.add_lab_extension(environment / "share" / "jupyter")
    # JupyterLab's terminals find the course's Python first.
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    os.chdir(ROOT)
    words = sys.argv[1:]
    if "--instructor" in words:
        words.remove("--instructor")
    else:
        hide_what_learners_do_not_need()

    from jupyterlab.labapp import LabApp

    LabApp.launch_instance([*options(), *words])
    return 0


if __name__ == "__main__":
    sys.exit(main())
