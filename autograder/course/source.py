"""What an assignment's source notebook says: its tests, what they hide, the names learners define.

A submission is never asked. Its cells are matched by name, and what a test says is read here.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]  # a notebook as its JSON file holds it
Cell = dict[str, Any]  # one of its cells
BEGIN, END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"


@dataclass(frozen=True)
class SourceCell:
    """A cell of the source. `kind`: "test", "setup" (locked code that is no test), "answer" or "other"."""

    name: str
    kind: str
    source: str
    points: float
    defines: frozenset[str]  # names that the solution assigns, for an answer

    @property
    def hidden(self) -> list[tuple[int, int]]:
        """First and last line, counted from 1, of each part between hidden-test markers, markers included."""
        parts, start = [], 0
        for number, line in enumerate(self.source.split("\n"), start=1):
            if BEGIN in line:
                start = number
            elif END in line and start:
                parts.append((start, number))
                start = 0
        return [*parts, (start, 10**9)] if start else parts

    @property
    def functions(self) -> frozenset[str]:
        """Names of the functions that it defines at its top level, classes left out."""
        return frozenset(node.name for node in ast.parse(self.source).body if isinstance(node, ast.FunctionDef))

    @property
    def visible(self) -> str:
        """What learners were given of it."""
        hidden = self.hidden
        lines = enumerate(self.source.split("\n"), start=1)
        return "\n".join(line for n, line in lines if not any(a <= n <= b for a, b in hidden)).rstrip()


@dataclass(frozen=True)
class Source:
    """An assignment's source notebook."""

    cells: tuple[SourceCell, ...]

    def find(self, name: str) -> SourceCell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    def setup_before(self, name: str) -> list[SourceCell]:
        """What the tests' process runs before a test: the set-up cells that stand before it, and of the other cells
        there the imports and definitions that tests use. A learner may change those cells; the source's text counts."""
        names = [cell.name for cell in self.cells]
        return [cell for cell in self._own[: names.index(name)] if cell is not None]

    def taken(self, name: str) -> tuple[list[str], list[str]]:
        """Names that a test takes from the learner's notebook: those that answers define, and any others."""
        mine = self.find(name)
        assert mine is not None
        before = self.setup_before(name)
        own = {bound for cell in (*before, mine) for bound in _bound(cell.source)} | set(dir(builtins))
        own |= {bound for cell in self.cells if cell.kind == "test" for bound in defined(cell.source)}
        wanted = {used for cell in (*before, mine) for used in _loaded(cell.source)}
        theirs = wanted & self.learners_names
        return sorted(theirs), sorted(wanted - own - self.learners_names)

    @cached_property
    def _own(self) -> list[SourceCell | None]:
        """For each cell what the tests' process runs of it before later tests."""
        wanted = {name for cell in self.cells if cell.kind in ("test", "setup") for name in used(cell.source)}
        found: list[SourceCell | None] = [cell if cell.kind == "setup" else None for cell in self.cells]
        more = True
        while more:  # a definition that is needed may need others
            more = False
            for number, cell in enumerate(self.cells):
                if cell.kind not in ("other", "answer"):
                    continue
                text = _definitions(cell, wanted - self.learners_names)
                before = found[number]
                if text and (before is None or before.source != text):
                    found[number] = SourceCell(f"cell {number + 1}", "setup", text, 0.0, frozenset())
                    wanted |= used(text)
                    more = True
        return found

    def answer_before(self, name: str) -> str:
        """The last answer cell before a cell: the one that a test belongs to. Empty if there is none."""
        names = [cell.name for cell in self.cells]
        return next((cell.name for cell in reversed(self.cells[: names.index(name)]) if cell.kind == "answer"), "")

    def answers_before(self, name: str) -> list[SourceCell]:
        """The answer cells before a cell; none if there is no such cell."""
        names = [cell.name for cell in self.cells]
        return [cell for cell in self.cells[: names.index(name)] if cell.kind == "answer"] if name in names else []

    @property
    def learners_names(self) -> set[str]:
        """Names that learners' answers define."""
        return {name for cell in self.cells for name in cell.defines}

    @cached_property
    def imported(self) -> set[str]:
        """Packages that the tests and what is run before them import, by their first name."""
        names: set[str] = set()
        for cell in (*self.cells, *self._own):
            if cell is not None and cell.kind in ("test", "setup"):
                with contextlib.suppress(SyntaxError):
                    for node in ast.walk(ast.parse(cell.source)):
                        if isinstance(node, ast.Import):
                            names |= {alias.name.split(".")[0] for alias in node.names}
                        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                            names.add(node.module.split(".")[0])
        return names

    def answer_with(self, name: str) -> str:
        """The answer cell that defines a name; empty if there is none."""
        return next((cell.name for cell in self.cells if name in cell.defines), "")


def read(path: Path) -> Source:
    """Read a source notebook; one that has not changed since is not read again. Raises OSError or ValueError."""
    about = path.stat()
    return _read(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=16)
def _read(path: Path, *_: int) -> Source:
    content = json.loads(path.read_text(encoding="utf-8"))
    return Source(tuple(_cell(cell) for cell in content["cells"] if cell["cell_type"] == "code"))


def nbgrader_metadata(cell: object) -> dict[str, Any]:
    """nbgrader's metadata of a cell of any notebook, a learner's too; empty if there is none or it is malformed."""
    for key in ("metadata", "nbgrader"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, dict) else {}


def grade_id(cell: object) -> str:
    """A cell's nbgrader name; empty if it has none or its metadata is malformed."""
    found = nbgrader_metadata(cell).get("grade_id")
    return found if isinstance(found, str) else ""


def _cell(cell: Cell) -> SourceCell:
    about = cell["metadata"].get("nbgrader", {})
    text = "".join(cell["source"])
    if about.get("solution"):
        kind = "answer"
    elif about.get("grade"):
        kind = "test"
    else:
        kind = "setup" if about.get("locked") else "other"
    defines = defined(text) if kind == "answer" else frozenset()
    return SourceCell(grade_id(cell), kind, text, float(about.get("points", 0)), defines)


def defined(text: str) -> frozenset[str]:
    """Names that code binds at its top level."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return frozenset()
    names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            names |= {
                part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
    return frozenset(names)


def _definitions(cell: SourceCell, wanted: set[str]) -> str:
    """The imports of a cell that bind these names; unless it is an answer its functions, classes and constants too."""
    try:
        body = ast.parse(cell.source).body
    except SyntaxError:  # a magic, or a stub that is no Python
        return ""
    kept = []
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound = {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif cell.kind == "answer":
            continue
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound = {node.name}
        elif isinstance(node, ast.Assign) and _is_literal(node.value):
            bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
        else:
            continue
        if bound & (wanted | {"*"}):
            kept.append(ast.unparse(node))
    return "\n".join(kept)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _bound(text: str) -> set[str]:
    """All names that code binds anywhere: assignments, imports, definitions, arguments."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return set()
    names = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    names |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    return names | {
        alias.asname or alias.name.split(".")[0]
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def _loaded(text: str) -> set[str]:
    """All names that code reads."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return set()
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def used(text: str) -> frozenset[str]:
    """All names that stand in code, and those of attributes."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return frozenset()
    return frozenset(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute))
    )
