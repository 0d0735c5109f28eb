"""The bank: wrong solutions that people write, each with its misconception, and right ones that are written otherwise.

A grader is trusted when it has been seen to catch each mistake at the test that names it, and to let
every right way pass. `BANK/ASSIGNMENT/FUNCTION/wrong_*.py` and `right_*.py` each replace the answer cell of one
function; the rest of the notebook stays the instructor's. A file opens with a docstring: its first line names the
misconception (or the style), and a wrong one adds two fields:

    Hint: what a learner should look at, without the answer.
    Caught by: the test cells that must lose points, by name, separated by commas

`BANK/ASSIGNMENT/hard_coded.py`, if there is one, defines all functions so that they only know the visible examples.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from autograder.course.course import CourseError
from autograder.course.source import Source

HARD_CODED = "hard_coded"


@dataclass(frozen=True)
class Variant:
    """One solution of the bank. `kind` is "wrong", "right" or "hard_coded"; only a wrong one has hint and caught_by."""

    assignment: str
    function: str  # empty for the hard-coded answers
    name: str
    kind: str
    title: str
    hint: str
    caught_by: tuple[str, ...]
    source: str

    @property
    def label(self) -> str:
        return f"{self.function}/{self.name}" if self.function else self.name


def read(folder: Path, assignment: str) -> list[Variant]:
    """All variants of one assignment, in order of their names; none if the bank does not know it.

    Raises CourseError that names the file, for one that is malformed.
    """
    paths = sorted((folder / assignment).glob("*/*.py"))
    found = [_read(path, assignment, path.parent.name) for path in paths]
    whole = folder / assignment / f"{HARD_CODED}.py"
    return found + ([_read(whole, assignment, "")] if whole.is_file() else [])


def answers(variant: Variant, source: Source) -> dict[str, str]:
    """What the variant puts into which answer cells of the notebook, by cell name.

    Raises CourseError if the notebook has no such function, or no such test as `Caught by` names.
    """
    tests = {cell.name for cell in source.cells if cell.kind == "test"}
    if unknown := [name for name in variant.caught_by if name not in tests]:
        raise CourseError(f"{_where(variant)}: no test is called {unknown[0]!r}; tests: {', '.join(sorted(tests))}")
    if variant.kind != HARD_CODED:
        cell = source.answer_with(variant.function)
        if not cell:
            raise CourseError(f"{_where(variant)}: no answer cell of the notebook defines {variant.function}")
        return {cell: variant.source}
    # Everything stands in the first answer cell, and the others are left empty.
    cells = [cell.name for cell in source.cells if cell.kind == "answer"]
    return {name: variant.source if name == cells[0] else "pass" for name in cells}


def _where(variant: Variant) -> str:
    return f"{variant.assignment}/{variant.label}.py"


def _read(path: Path, assignment: str, function: str) -> Variant:
    where = "/".join([assignment, function, path.name]) if function else f"{assignment}/{path.name}"
    kind = HARD_CODED if not function else path.stem.split("_", 1)[0]
    if kind not in ("wrong", "right", HARD_CODED):
        raise CourseError(f"{where}: a file of the bank is called wrong_... or right_...")
    text = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise CourseError(f"{where}: line {error.lineno}: {error.msg}") from error
    words = ast.get_docstring(tree) or ""
    title = words.split("\n", 1)[0].strip()
    if not title:
        raise CourseError(f"{where}: it opens with no docstring that says what it stands for")
    hint, caught = _field(words, "Hint"), _field(words, "Caught by")
    if kind == "wrong" and not (hint and caught):
        raise CourseError(f"{where}: a wrong solution needs `Hint: ...` and `Caught by: ...` in its docstring")
    if function and function not in _defined(tree):
        raise CourseError(f"{where}: it does not define {function}")
    caught_by = tuple(name.strip() for name in caught.split(",") if name.strip())
    return Variant(assignment, function, path.stem, kind, title, hint, caught_by, text)


def _field(words: str, name: str) -> str:
    """The text after `name:` at the start of a line, up to the next field or the end, on one line."""
    found = re.search(rf"^{name}:(.*?)(?=^(?:Hint|Caught by):|\Z)", words, re.MULTILINE | re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def _defined(tree: ast.Module) -> set[str]:
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
