"""Reads a submitted notebook as plain data: its cells' types, texts and pictures, and nothing that could run.

What a submission may hold is bounded here: the number of cells, the length of a text, and the kinds of pictures.
"""

from __future__ import annotations

import json
import re
from typing import TypedDict

from autograder.course.source import Cell, Notebook, grade_id, nbgrader_metadata

_MOST_TEXT = 500_000  # characters of a cell
_MOST_CELLS = 2_000
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # no SVG: it may hold scripts


class SubmittedCell(TypedDict):
    """A cell of a submission in a plain form: only what is used of it, checked."""

    cell_type: str  # "code", "markdown" or "raw"
    source: str
    id: str | None
    grade_id: str  # empty if it has none
    nbgrader: dict[str, object]
    attachments: dict[str, dict[str, str]]  # name -> kind of picture -> data


class RefusedError(Exception):
    """This file cannot be graded; the message says why, for the learner too."""


def parse(data: bytes) -> Notebook:
    """A notebook file's content. Raises RefusedError, saying why, for anything that is no notebook."""
    if not data.strip():
        raise RefusedError("the file is empty")
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RefusedError(f"it is not JSON: not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise RefusedError(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise RefusedError("it is not a notebook: nested too deeply") from None
    except ValueError:  # a number of thousands of digits
        raise RefusedError("it is not a notebook: it holds a number that is far too long") from None
    if not isinstance(content, dict) or not isinstance(cells_of(content), list):
        raise RefusedError("it is JSON, but not a notebook: it has no list of cells")
    return content


def quoted(name: object, most: int = 80) -> str:
    """A name from a submission, safe to print and to show on a page."""
    text = re.sub(r"[^\w .,:+/()@-]", "?", str(name))
    return repr(text if len(text) <= most else text[:most] + "...")


def cells_of(notebook: Notebook) -> list[object] | None:
    """The list of cells, which notebooks of format 3 keep in worksheets; None if there is none."""
    if isinstance(cells := notebook.get("cells"), list):
        return cells
    sheets = notebook.get("worksheets")
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
    found = [cells for cells in lists if isinstance(cells, list)]
    return [cell for cells in found for cell in cells] if found else None


def plain_cells(notebook: Notebook, repairs: list[str]) -> list[SubmittedCell]:
    """The submission's cells in a plain form; a sentence in `repairs` for whatever was left out or cut."""
    cells: list[SubmittedCell] = []
    broken = 0
    everything = cells_of(notebook) or []
    if len(everything) > _MOST_CELLS:
        repairs.append(f"The notebook has {len(everything)} cells; those after the first {_MOST_CELLS} were left out.")
    for cell in everything[:_MOST_CELLS]:
        if not isinstance(cell, dict):
            broken += 1
            continue
        kind = cell.get("cell_type")
        text = _clean(text_of(cell))
        where = grade_id(cell) or f"number {len(cells) + 1}"
        if text != text_of(cell):
            repairs.append(
                f"Cell {quoted(where)} held characters that no program may hold, or was too long; it was cut."
            )
        cells.append(
            {
                "cell_type": kind if kind in ("code", "markdown") else "markdown" if kind == "heading" else "raw",
                "source": text,
                "id": cell.get("id") if isinstance(cell.get("id"), str) else None,
                "grade_id": grade_id(cell),
                "nbgrader": nbgrader_metadata(cell),
                "attachments": _pictures(cell.get("attachments"), where, repairs),
            }
        )
    if broken:
        repairs.append(f"{broken} entries of the notebook's list of cells were no cells; they were left out.")
    return cells


def text_of(cell: Cell) -> str:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return ""
    return source.replace("\r\n", "\n").replace("\r", "\n")  # some editors write a notebook with the ends of Windows


def _clean(text: str) -> str:
    """The text without null bytes and broken characters, not over-long."""
    text = text[:_MOST_TEXT].replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")


def _pictures(attachments: object, where: str, repairs: list[str]) -> dict[str, dict[str, str]]:
    """The pictures among a cell's attachments, under plain names; anything else may carry a script."""
    kept: dict[str, dict[str, str]] = {}
    if not isinstance(attachments, dict):
        return kept
    for name, bundle in attachments.items():
        good = isinstance(bundle, dict) and re.fullmatch(r"[\w .()-]{1,100}", name) is not None
        pictures = {
            kind: re.sub(r"\s", "", data)
            for kind, data in (bundle.items() if good else ())
            if kind in _PICTURES and isinstance(data, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]*", data)
        }
        if pictures:
            kept[name] = pictures
        else:
            repairs.append(f"An attachment of cell {quoted(where)} is no plain picture; it was left out.")
    return kept
