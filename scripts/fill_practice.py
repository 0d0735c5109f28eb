"""Writes what the problem sets take from the practice exercises into their source notebooks.

A practice exercise is defined once, in `exercises/practice/`. A problem set that grades the same program holds blocks,
from a line that names exercise and part to a line that ends the block; this script writes what stands between them:

    <!-- practice 01_groupwise_int8: Input -->      a section of the prompt, in a text cell
    # practice 01_groupwise_int8: samples           samples with outputs, cases or refused inputs, in code
    ... end of practice

`python scripts/fill_practice.py` writes them; after it, release the problem set. With `--check` it writes nothing and
exits with 1 if a notebook differs.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import yaml

EXERCISES = Path(__file__).resolve().parents[1] / "exercises"
_WIDTH = 120
_TEXT = re.compile(r"(<!-- practice (\w+): (.+?) -->\n).*?(<!-- end of practice -->)", re.DOTALL)
_CODE = re.compile(r"(# practice (\w+): (\w+)\n).*?(# end of practice)", re.DOTALL)


@dataclass(frozen=True)
class Exercise:
    """One exercise; samples, further cases and refused inputs by name."""

    id: str
    title: str
    prompt: str
    xp: int
    samples: dict[str, str]
    cases: dict[str, str]
    refused: dict[str, str]
    starter: str
    solution: str

    @property
    def accepted(self) -> dict[str, str]:
        return self.samples | self.cases

    def section(self, name: str) -> str:
        """The part of the prompt under the line `**name**`."""
        found = re.search(rf"^\*\*{name}\*\*\n\n(.*?)(?=^\*\*[\w ]+\*\*$|\Z)", self.prompt, re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"{self.id}: the prompt has no section {name!r}")
        return found[1].strip()


def read(folder: Path) -> Exercise:
    """Raises ValueError where two inputs of a kind have the same name."""
    fields = yaml.safe_load((folder / "exercise.yml").read_text(encoding="utf-8"))
    for kind in ("samples", "cases", "refused"):
        listed = fields[kind]
        fields[kind] = {one["name"]: one["input"] for one in listed}
        if len(fields[kind]) != len(listed):
            raise ValueError(f"{folder.name}: two {kind} have the same name")
    programs = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in ("starter", "solution")}
    return Exercise(**fields, **programs)


def read_all() -> dict[str, Exercise]:
    """All exercises by id, in their order."""
    found = [read(path.parent) for path in sorted((EXERCISES / "practice").glob("*/exercise.yml"))]
    return {exercise.id: exercise for exercise in found}


def run(program: str, text: str) -> str:
    """What a program prints for this standard input; raises what it raises."""
    out = io.StringIO()
    with mock.patch.object(sys, "stdin", io.StringIO(text, newline="")), contextlib.redirect_stdout(out):
        exec(compile(program, "program", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def filled(cell: str, exercises: dict[str, Exercise]) -> str:
    """The source of a cell with each of its blocks written anew."""
    cell = _TEXT.sub(lambda m: f"{m[1]}{exercises[m[2]].section(m[3])}\n{m[4]}", cell)
    return _CODE.sub(lambda m: f"{m[1]}{_code(exercises[m[2]], m[3])}\n{m[4]}", cell)


def _code(exercise: Exercise, kind: str) -> str:
    """`kind = [...]`: (name, input, output) of each sample, or (name, input) of each further case or refused input."""
    inputs: dict[str, str] = getattr(exercise, kind)
    rows = []
    for name, text in inputs.items():
        output = [run(exercise.solution, text).removesuffix("\n")] if kind == "samples" else []
        row = f"    ({', '.join(map(_quoted, (name, text, *output)))}),"
        if len(row) > _WIDTH:
            row = "\n".join(["    (", *map(_on_its_own, (name, text, *output)), "    ),"])
        rows.append(row)
    return "\n".join([f"{kind} = [", *rows, "]"])


def _on_its_own(text: str) -> str:
    """On a line of its own; where that is too long, on one for each of its lines. As ruff would write it."""
    whole = f"        {_quoted(text)},"
    if len(whole) <= _WIDTH:
        return whole
    return textwrap.indent("\n".join(map(_quoted, text.splitlines(keepends=True))), " " * 8) + ","


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def main(arguments: list[str]) -> int:
    exercises = read_all()
    differ = []
    for path in sorted((EXERCISES / "source").glob("*/*.ipynb")):
        before = path.read_text(encoding="utf-8")
        notebook = json.loads(before)
        for cell in notebook["cells"]:
            cell["source"] = filled("".join(cell["source"]), exercises).splitlines(keepends=True)
        after = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        if after != before:
            differ.append(path)
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    for path in differ:
        print(path.relative_to(EXERCISES))
    return 1 if differ and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
