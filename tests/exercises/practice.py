"""Reads the practice exercises, and runs a program of theirs as a shell would: standard input in, output out."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import yaml
from in_process import COURSE


@dataclass(frozen=True)
class Exercise:
    """One exercise; samples, cases and refused inputs by name."""

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


def read(folder: Path) -> Exercise:
    fields = yaml.safe_load((folder / "exercise.yml").read_text(encoding="utf-8"))
    for kind in ("samples", "cases", "refused"):
        listed = fields[kind]
        fields[kind] = {one["name"]: one["input"] for one in listed}
        assert len(fields[kind]) == len(listed), f"{folder.name}: two {kind} have the same name"
    programs = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in ("starter", "solution")}
    return Exercise(**fields, **programs)


EXERCISES = [read(path.parent) for path in sorted((COURSE / "practice").glob("*/exercise.yml"))]
BY_ID = {exercise.id: exercise for exercise in EXERCISES}


def run(program: str, text: str) -> str:
    """What the program prints for this input; raises what the program raises."""
    out = io.StringIO()
    with mock.patch.object(sys, "stdin", io.StringIO(text, newline="")), contextlib.redirect_stdout(out):
        exec(compile(program, "program", "exec"), {"__name__": "__main__"})
    return out.getvalue()
