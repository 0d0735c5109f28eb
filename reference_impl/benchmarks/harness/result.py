"""The result of a benchmark: sections of rows and targets, with the machine and the versions, as one JSON file.

A target is a promise with its limit, so a reader sees at once whether it was kept. A figure that could not be measured
keeps no promise.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_impl.common.files import written_whole

FORMAT = 1

Row = dict[str, Any]  # column -> text, number or None


@dataclass(frozen=True)
class Target:
    """A promise: `value` (None if it was not measured) is at least, or at most, `limit`."""

    what: str
    value: float | None
    limit: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass
class Section:
    """One question with its table and targets. `columns`: row key -> heading with the unit, in the order shown."""

    name: str
    title: str
    columns: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Save = Callable[[Section], None]  # saves an incomplete section, so that its rows are not lost


def forget(section: Section) -> None:
    """A `Save` that keeps nothing."""


@dataclass
class Result:
    """One run on one machine."""

    date: str  # ISO
    hardware: dict[str, Any]
    versions: dict[str, str | None]  # None: not installed
    settings: dict[str, Any]
    sections: list[Section] = field(default_factory=list)

    def section(self, name: str) -> Section:
        """KeyError if the run had no such section."""
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)

    def to_json(self) -> str:
        found = {"format": FORMAT} | dataclasses.asdict(self)
        for written, section in zip(found["sections"], self.sections, strict=True):
            for shown, target in zip(written["targets"], section.targets, strict=True):
                shown["met"] = target.met
        return json.dumps(found, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str = "result") -> Result:
        """ValueError, naming `source`, for what is not a result of this format."""
        try:
            found = json.loads(text)
            if found.pop("format") != FORMAT:
                raise ValueError(f"format {FORMAT} expected")
            sections = []
            for section in found.pop("sections"):
                targets = [Target(**{k: v for k, v in t.items() if k != "met"}) for t in section.pop("targets")]
                sections.append(Section(**section, targets=targets))
            return cls(**found, sections=sections)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{source}: not a benchmark result ({error!r})") from None

    def write(self, folder: Path, parts: Sequence[str] = ()) -> Path:
        """Writes <hardware>-<date>.json, which replaces an earlier file of the same day and machine.

        `parts` name what a partial run was: "decode", "quick". Its file does not replace that of a whole run.
        """
        folder.mkdir(parents=True, exist_ok=True)
        slug = "".join(c if c.isalnum() else "-" for c in str(self.hardware["name"]).lower())
        path = folder / f"{'-'.join([*filter(None, slug.split('-')), self.date, *parts])}.json"
        self.write_to(path)
        return path

    def write_to(self, path: Path) -> None:
        """Writes this file; a reader never meets half of it."""
        with written_whole(path) as part:
            part.write_text(self.to_json(), encoding="utf-8")


def finite(section: Section) -> Section:
    """The section as JSON can hold it: NaN and infinite numbers become None, and a note names each of them."""
    notes = list(section.notes)

    def kept(value: Any, where: str) -> Any:
        if not isinstance(value, float) or math.isfinite(value):
            return value
        notes.append(f"Not a finite number: {where} was {value}.")
        return None

    rows = [
        {key: kept(value, f"{section.columns.get(key, key)!r} in row {n}") for key, value in row.items()}
        for n, row in enumerate(section.rows, 1)
    ]
    targets = [
        dataclasses.replace(target, value=kept(target.value, f"the target {target.what!r}"))
        for target in section.targets
    ]
    return dataclasses.replace(section, rows=rows, targets=targets, notes=notes)
