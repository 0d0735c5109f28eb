"""A class on the small assignment: a course directory as an instructor has it, and submissions of every kind."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from small_course import ANSWER, Notebook, answered, cell, code, released, write

from autograder.course.course import Course, open_nbgrader
from autograder.intake.collect import original

ROOT = Path(__file__).resolve().parents[3]
PS = "ps"
CANARY = "CANARY-41c9"  # stands in a hidden test only


def make_class(root: Path, *assignments: str) -> Any:
    """An nbgrader course directory with released assignments; returns nbgrader's API on it."""
    root.mkdir(parents=True)
    config = (ROOT / "exercises/nbgrader_config.py").read_text(encoding="utf-8")
    (root / "nbgrader_config.py").write_text(config + "c.Execute.timeout = 4\nc.SandboxedExecute.budget = 15\n")
    api = None
    for name in assignments or (PS,):
        source = copy.deepcopy(released())
        cell(source, "double")["source"] = (
            "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
        )
        hidden = f"### BEGIN HIDDEN TESTS\nassert double(21) == 42  # {CANARY}\n### END HIDDEN TESTS"
        cell(source, "test-two")["source"] += f"\n{hidden}"
        cell(source, "essay")["source"] = "### BEGIN SOLUTION\nIt is.\n### END SOLUTION"
        write(root / "source" / name / f"{name}.ipynb", source)
        api = open_nbgrader(Course(root), root)
        result = api.generate_assignment(name)
        assert result["success"], result["log"]
    return api


@dataclass(frozen=True)
class Kind:
    """How to write a submission, the automatic points that it must get (of 5), and words that its reason must hold."""

    name: str
    write: Callable[[Path, str], None]
    score: float
    words: str = ""


def hand_in(root: Path, student: str, kind: Kind, assignment: str = PS) -> Path:
    folder = root / "submitted" / student / assignment
    folder.mkdir(parents=True)
    kind.write(folder, assignment)
    return folder


def tree(*folders: Path) -> dict[str, str]:
    """Hash, mode and owner of every file below these folders."""
    found = {}
    for folder in folders:
        for path in sorted([folder, *folder.rglob("*")]):
            about = path.lstat()
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = f"{hashlib.sha256(data).hexdigest()} {about.st_mode} {about.st_uid}"
    return found


def answer(text: str) -> Callable[[Path, str], None]:
    def write_it(folder: Path, assignment: str) -> None:
        notebook = answered()
        cell(notebook, "double")["source"] = text
        write(folder / f"{assignment}.ipynb", notebook)

    return write_it


def _edit(edit: Callable[[Notebook], None]) -> Callable[[Path, str], None]:
    def write_it(folder: Path, assignment: str) -> None:
        notebook = answered()
        edit(notebook)
        write(folder / f"{assignment}.ipynb", notebook)

    return write_it


def _file(data: bytes) -> Callable[[Path, str], None]:
    return lambda folder, assignment: _bytes(folder / f"{assignment}.ipynb", data)


def _bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _more(text: str, *, first: bool = False) -> Callable[[Path, str], None]:
    return _edit(lambda notebook: notebook["cells"].insert(0 if first else len(notebook["cells"]), code(text)))


def _skip(notebook: Notebook) -> None:
    cell(notebook, "double")["source"] = "double = None"
    for one in notebook["cells"]:
        one["metadata"]["tags"] = ["skip-execution"]


def _delete(notebook: Notebook) -> None:
    notebook["cells"].remove(cell(notebook, "test-two"))


def _copy(notebook: Notebook) -> None:
    notebook["cells"].append(copy.deepcopy(cell(notebook, "test-two")))


def _link(folder: Path, assignment: str) -> None:
    (folder / f"{assignment}.ipynb").symlink_to(folder.parents[3] / "source" / assignment / f"{assignment}.ipynb")


def _rename(folder: Path, assignment: str) -> None:
    write(folder / "my homework.ipynb", answered())


def _other(folder: Path, assignment: str) -> None:
    write(folder / f"{assignment}.ipynb", {**answered(), "cells": [code("print(1)")]})


ATTACK = f"""
import os, shutil
for top in ({str(ROOT)!r}, "/tmp", "/root", "/home", "/var"):
    for here, folders, names in os.walk(top):
        for name in names:
            try:
                open(os.path.join(here, name), "a").write("owned")
            except OSError:
                pass
for name in ("/tmp/owned", "/marker", "/root/owned"):
    try:
        open(name, "w").write("owned")
    except OSError:
        pass
"""
EQUAL = "class Yes(int):\n    def __eq__(self, other):\n        return True\n\n\ndef double(x):\n    return Yes(7)"

KINDS = [
    Kind("right", answer(ANSWER), 5),
    Kind("other-style", answer("double = lambda x: sum([x, x])"), 5),
    Kind("noisy", answer(f"import sys, warnings\nprint('hm', file=sys.stderr)\nwarnings.warn('hm')\n{ANSWER}"), 5),
    Kind("half", answer("def double(x):\n    return abs(2 * x)"), 2, "test-minus-one"),
    Kind("wrong", answer("def double(x):\n    return x"), 0, "test-two"),
    Kind("hard-coded", answer("def double(x):\n    return {2: 4, -1: -2}[x]"), 3, "test-two"),
    Kind("stub", _edit(lambda notebook: cell(notebook, "double").update(cell(released(), "double"))), 0, "NotImpl"),
    Kind("raises", answer("1 / 0"), 0, "ZeroDivisionError"),
    Kind("no-python", answer("def double(x:"), 0, "SyntaxError"),
    Kind("not-json", _file(b'{"cells": ['), 0, "it is not JSON"),
    Kind("empty-file", _file(b""), 0, "the file is empty"),
    Kind("not-text", _file(bytes(range(256))), 0, "not UTF-8"),
    Kind("nothing", lambda folder, assignment: None, 0, "it is missing"),
    Kind("another-notebook", _other, 0, "no cell of this assignment"),
    Kind("renamed", _rename, 5, ""),
    Kind("test-deleted", _edit(_delete), 5),
    Kind("test-copied", _edit(_copy), 5),
    Kind("dies", _more("import os; os._exit(0)"), 5),
    Kind("hangs", answer("def double(x):\n    while True:\n        pass"), 0, "test-two"),
    Kind("skips-tests", _edit(_skip), 0),
    Kind("always-equal", answer(EQUAL), 0),
    Kind("link-to-the-source", _link, 0, "it is a symbolic link"),
    Kind("attack", _more(ATTACK, first=True), 5),
    Kind("prints-much", _more("for _ in range(20):\n    print('x' * 1_000_000)"), 5),
]


def fill(root: Path, count: int, assignment: str = PS) -> dict[str, Kind]:
    """Hand in `count` submissions, the kinds in turn; returns the kind of each student."""
    members = {f"s{number:03}-{KINDS[number % len(KINDS)].name}": KINDS[number % len(KINDS)] for number in range(count)}
    for student, kind in members.items():
        hand_in(root, student, kind, assignment)
    return members


def copy_class(root: Path, target: Path) -> Path:
    """The course directory with what was handed in and nothing graded."""
    target.mkdir()
    shutil.copy(root / "nbgrader_config.py", target)
    for name in ("source", "release"):
        shutil.copytree(root / name, target / name)
    for path in (root / ".received").glob("*/*"):
        if (kept := original(root, path.parent.name, path.name)) is not None:
            shutil.copytree(kept, target / "submitted" / path.name / path.parent.name)
    return target


def seen_by_learners(root: Path) -> str:
    """All text of the feedback pages."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (root / "feedback").rglob("*.html"))


def telemetry(root: Path, assignment: str = PS) -> list[dict[str, Any]]:
    lines = (root / f"{assignment}-telemetry.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
