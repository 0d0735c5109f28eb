"""The lessons' tables: HTML in JupyterLab and on the page, aligned text in a terminal.

    table({"batch": "", "ms per step": ".2f"}, [(1, 4.87), (8, 5.44)])      # the last line of a cell

`quiet_table` shows a measurement that lies in the repository, with the machine's name, so that a learner on a busy
machine sees what a quiet one measured.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from reference_impl.benchmarks.harness.committed import quiet_result, quiet_rows


@dataclass(frozen=True)
class Table:
    """Headings and cells as text. A column is aligned to the right unless its cells are words."""

    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    left: Sequence[bool]  # for each column
    caption: str = ""

    def __repr__(self) -> str:
        lines = [list(self.headings), *self.cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "   ".join(
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(line, widths, self.left, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.caption, *shown] if self.caption else shown)

    def _repr_html_(self) -> str:
        sides = ["left" if left else "right" for left in self.left]
        head = _row(self.headings, sides, "th scope=col")
        body = "".join(_row(line, sides, "td") for line in self.cells)
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return (
            '<div style="overflow-x:auto" tabindex="0" role="group" aria-label="Table">'
            f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table></div>"
        )


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]], caption: str = "") -> Table:
    """A table of `rows`. `columns`: heading -> format of its values; words are shown as they are, None as a dash."""
    values = [list(row) for row in rows]
    cells = [[_cell(value, spec) for value, spec in zip(row, columns.values(), strict=True)] for row in values]
    left = [any(isinstance(row[i], str) for row in values) for i in range(len(columns))]
    return Table(list(columns), cells, left, caption)


def quiet_table(section: str, columns: Mapping[str, tuple[str, str]], **where: Any) -> Table:
    """Rows of a committed measurement on a quiet machine. `columns`: heading -> (column of the section, format)."""
    result = quiet_result(section)
    rows = [[row[key] for key, _ in columns.values()] for row in quiet_rows(section, **where)]
    caption = f"Measured on a quiet machine: {result.hardware['name']}, {result.date}"
    return table({heading: spec for heading, (_, spec) in columns.items()}, rows, caption)


def quiet_value(section: str, column: str, **where: Any) -> Any:
    """One value of a committed measurement on a quiet machine: that of the first row that `where` picks."""
    return quiet_rows(section, **where)[0][column]


def _cell(value: Any, spec: str) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else format(value, spec)


def _row(cells: Sequence[str], sides: Sequence[str], tag: str) -> str:
    shown = []
    for cell, side in zip(cells, sides, strict=True):
        opening = tag if cell else "td"  # a corner of a table heads nothing
        name = opening.split()[0]
        shown.append(f'<{opening} style="text-align:{side};padding:0.15em 0.6em">{escape(cell)}</{name}>')
    return f"<tr>{''.join(shown)}</tr>"
