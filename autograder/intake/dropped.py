"""Learners who have left the class, one id a line in `dropped.txt` of the course: their work is kept and left alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

FILE = "dropped.txt"  # in the course's folder


def dropped(root: Path) -> set[str]:
    """The ids of those who have left; none if there is no such file."""
    try:
        lines = (root / FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return set()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def write_dropped(root: Path, names: Iterable[str]) -> None:
    """Replace the file, whole or not at all."""
    path = root / FILE
    fresh = path.with_name(f"{FILE}-{os.getpid()}.tmp")
    fresh.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
    os.replace(fresh, path)
