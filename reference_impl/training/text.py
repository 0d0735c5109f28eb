"""The text that the course's pair is trained on: Python's own library and documentation, in three kinds.

Code is the library's sources, prose the documentation in reST (Debian's package `python3.11-doc` has it; where it is
absent, the library's docstrings), structured data an index of each module's functions as JSON, CSV or INI. All of it
is under the PSF licence. Files are split by name: about one in twenty is held out, whole, with its index.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = ("code", "prose", "structured")
LEFT_OUT = {  # folders of the library: tests, other people's packages, tables, and the documentation once more
    "__pycache__", "encodings", "idle_test", "pydoc_data", "site-packages", "dist-packages", "test", "tests",
}  # fmt: skip
DEBIAN_DOCS = "/usr/share/doc"


@dataclass(frozen=True)
class Document:
    """One file's text. `name`, relative to the library or the documentation, decides the split."""

    kind: str
    name: str
    text: str

    @property
    def held_out(self) -> bool:
        return _number(self.name) % 20 == 0


def documents(docs: Path | None = None, library: Path | None = None, only_held_out: bool = False) -> list[Document]:
    """All documents, sorted by kind and name. `docs`: a folder of reST files; None uses the library's docstrings.

    `library`: the folder of the standard library, by default that of the running Python. `only_held_out`: just those,
    twenty times as fast. ValueError if a folder holds no such files.
    """
    library = library or Path(sysconfig.get_path("stdlib"))
    found: list[Document] = []
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library).as_posix()
        # _sysconfigdata names the folders of the machine that Python was built on
        if LEFT_OUT & set(name.split("/")) or path.name.startswith("_sysconfigdata"):
            continue
        if only_held_out and not Document("code", name, "").held_out:
            continue
        source = _read(path)
        if source is None:
            continue
        found.append(Document("code", name, source))
        tree = _parsed(source)
        if tree is not None:
            found.append(Document("structured", name, index(tree, _number(name) // 20 % 3)))
            if docs is None:
                found.append(Document("prose", name, "\n\n".join(_docstrings(tree))))
    if not found:
        raise ValueError(f"{library}: expected Python's standard library there, found no .py files")
    if docs is not None:
        pages = [*sorted(docs.rglob("*.rst.txt")), *sorted(docs.rglob("*.rst"))]
        if not pages:
            raise ValueError(f"{docs}: expected Python's documentation in reST there, found no .rst or .rst.txt files")
        found += [Document("prose", path.relative_to(docs).as_posix(), _read(path) or "") for path in pages]
    wanted = [d for d in found if d.text.strip() and (d.held_out or not only_held_out)]
    return sorted(wanted, key=lambda d: (d.kind, d.name))


def find_docs() -> Path | None:
    """Where Debian's package puts the documentation's sources, if it is installed."""
    return next(iter(sorted(Path(DEBIAN_DOCS).glob("python3*/html/_sources"), reverse=True)), None)


def index(tree: ast.Module, form: int) -> str:
    """The functions and classes of a module as a table: JSON (form 0), CSV (1) or INI (2); empty if there are none."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    rows = [
        {
            "name": node.name,
            "kind": "class" if isinstance(node, ast.ClassDef) else "function",
            "line": node.lineno,
            "arguments": _arguments(node),
        }
        for node in nodes
    ]
    if not rows:
        return ""
    if form == 0:
        return "[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n"
    flat = [
        row | {"arguments": " ".join(arguments)} for row, arguments in zip(rows, map(_arguments, nodes), strict=True)
    ]
    if form == 1:
        out = io.StringIO()
        writer = csv.DictWriter(out, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return out.getvalue()
    return "\n".join(
        f"[{row['name']}]\n" + "".join(f"{key} = {row[key]}\n" for key in ("kind", "line", "arguments")) for row in flat
    )


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    return [] if isinstance(node, ast.ClassDef) else [a.arg for a in node.args.args]


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():  # old escapes in old modules
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError:
        return None


def _read(path: Path) -> str | None:
    """Text in UTF-8, which the library is written in but for a few files."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
