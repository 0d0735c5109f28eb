"""Run each lesson once for a whole test run: its page and its own tests read the same outputs.

A stored lesson is named after a digest of everything that it is made from, so it is found only by those very sources.
A plain build of the site stores nothing and takes nothing from here.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
from lesson import run_lesson
from nbformat import NotebookNode

SOURCES = (
    "reference_impl",
    "interactives",
    "constraints.txt",
    "book/lesson.py",
    "book/lesson_store.py",
    "book/machine_load.py",
)
MADE = {"node_modules", "__pycache__", "src"}  # of interactives/src a lesson sees what was built from it


def run_once(
    root: Path,
    name: str,
    store: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    timeout: float = 300,
) -> NotebookNode:
    """The lesson `root`/`name` with its outputs, run by whichever process asks first; the others wait for it.

    Its metadata say how many seconds of CPU the kernel took: {"course": {"cpu_seconds": ...}}. Raises LessonError.
    """
    path = root / name
    store.mkdir(parents=True, exist_ok=True)
    kept = store / f"{path.stem}-{digest(root, path)[:20]}.ipynb"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            before = os.times()
            notebook = run_lesson(path, name, progress, timeout)
            after = os.times()  # the kernel is a child of this process, and has ended
            notebook.metadata["course"]["cpu_seconds"] = sum(after[2:4]) - sum(before[2:4])
            unfinished = kept.with_suffix(".unfinished")
            nbformat.write(notebook, unfinished)
            unfinished.rename(kept)
        return nbformat.read(kept, as_version=4)


def digest(root: Path, path: Path) -> str:
    """Return a digest of the notebook and of all code that its numbers come from."""
    found = hashlib.sha256(path.read_bytes())
    for top in (root / name for name in SOURCES):
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            inside = file.relative_to(root)
            if file.is_file() and not MADE & set(inside.parts):
                found.update(f"{inside.as_posix()}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return found.hexdigest()
