"""A course to begin with: a configuration, one assignment, its bank of solutions and its hints.

The files are those of `template/`, which is a course's folder as it stands.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from autograder.course import CONFIG, exchange
from autograder.course.course import CourseError

TEMPLATE = Path(__file__).parent / "template"
_EXCHANGE = 'c.Exchange.root = str(root.parent / f"{root.name}-exchange")'


def make(folder: Path, exchange_root: Path | None = None) -> None:
    """Make a course in a new or empty folder that nobody else may enter, and its exchange.

    `exchange_root` is the exchange's folder; by default it lies beside `folder`. Raises CourseError if `folder` is not
    empty or the exchange would lie inside it.
    """
    folder = folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(f"{folder} exists and is not empty: name a new folder")
    root = (exchange_root or folder.with_name(f"{folder.name}-exchange")).resolve()
    if root.is_relative_to(folder):
        raise CourseError(f"the exchange {root} would lie in the course folder, which learners must not enter")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    folder.chmod(0o700)
    if exchange_root is not None:
        path = folder / CONFIG
        path.write_text(path.read_text(encoding="utf-8").replace(_EXCHANGE, f'c.Exchange.root = "{root}"'), "utf-8")
    exchange.make(root)
