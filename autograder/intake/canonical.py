"""A submitted notebook, rebuilt on the released one: only what a learner may write is taken from the learner.

Nothing is checked for tampering. Every cell of the assignment's own is taken from the released notebook,
in its order, with its metadata; from the submission come the texts of its answer cells and the learner's own cells,
without metadata or outputs. Whatever a submission did to the rest (deleted, copied, reordered, retagged, retyped) is
undone the same way, and each repair is told in words. No hidden test and no solution is involved: nbgrader puts the
tests in later.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from autograder.course.source import Cell, Notebook, grade_id
from autograder.intake.submitted import RefusedError, SubmittedCell, plain_cells, quoted, text_of
from autograder.intake.submitted import parse as parse  # callers take all they need for a submission from here

_MARKERS = ("### BEGIN SOLUTION", "### BEGIN HIDDEN TESTS")
_ELSEWHERE = "*(The marked cell holds no answer. Other cells of the notebook may.)*"


@dataclass(frozen=True)
class Canonical:
    """The rebuilt notebook, and what had to be repaired: one sentence each."""

    notebook: Notebook
    repairs: list[str]


@dataclass
class _Match:
    """Which cell of the submission stands for which cell of the assignment (by index, in the submission's order)."""

    released: list[Cell]
    submitted: list[SubmittedCell]
    of: dict[int, str] = field(default_factory=dict)  # submitted index -> grade_id
    copies: dict[int, str] = field(default_factory=dict)  # further cells with the same grade_id

    def claimed(self, name: str) -> int | None:
        return next((index for index, other in self.of.items() if other == name), None)


def canonical(submitted: Notebook, released: Notebook, versions: Sequence[Notebook] = ()) -> Canonical:
    """Rebuild a submission (as `parse` returns it) on the released notebook.

    `versions` are other versions that learners may have been given: what is as in one of them, the course has changed
    and not the learner, so it is no repair. Raises RefusedError if no cell of the assignment is in it, and nothing
    else, whatever the submission holds.
    """
    repairs: list[str] = []
    given = _released(released)
    cells = plain_cells(submitted, repairs)
    known = [{grade_id(cell): text_of(cell).strip() for cell in version["cells"]} for version in [released, *versions]]
    match = _match(given, cells, known, repairs)
    if not match.of:
        raise RefusedError("it holds no cell of this assignment (another notebook under its name?)")
    _tell(given, match, repairs)

    own_text = any(
        cell["cell_type"] == "markdown" and index not in match.of and not _known(cell, given)
        for index, cell in enumerate(cells)
    )
    # The learner's own cells, by the assignment's cell that they follow.
    blocks: dict[str, list[SubmittedCell]] = {"": []}
    last = ""
    for index, cell in enumerate(cells):
        if index in match.of:
            last = match.of[index]
        elif _is_own(index, match):
            blocks.setdefault(last, []).append(cell)

    built = [_own(cell) for cell in blocks[""]]
    for master in given:
        if not (name := grade_id(master)):
            continue
        place = match.claimed(name)
        built.append(_rebuilt(master, None if place is None else cells[place], own_text, known, repairs))
        built += [_own(cell) for cell in blocks.get(name, [])]
    used = {part["id"] for part in built if "id" in part}
    for number, part in enumerate((part for part in built if "id" not in part), start=1):
        name = f"own-{number}"
        while name in used:
            name += "x"
        part["id"] = name
    notebook = {
        "cells": built,
        "metadata": json.loads(json.dumps(released.get("metadata", {}))),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return Canonical(notebook, repairs)


def stub(released: Notebook) -> Notebook:
    """The released notebook as a submission without answers: what stands for a submission that was refused."""
    return canonical(released, released).notebook


def with_note(notebook: Notebook, title: str, lines: list[str]) -> Notebook:
    """The notebook with a first cell that tells the learner, and whoever grades, what was done to it."""
    if not lines:
        return notebook
    text = f"**{title}**\n\n" + "\n".join(f"- {line}" for line in lines)
    cell = {"cell_type": "markdown", "id": "collected-note", "metadata": {}, "source": text}
    return {**notebook, "cells": [cell, *notebook["cells"]]}


def _released(notebook: Notebook) -> list[Cell]:
    """The released notebook's cells. Raises ValueError for the instructor's source: its answers must not be used."""
    cells = [{**cell, "source": text_of(cell)} for cell in notebook["cells"]]
    for cell in cells:
        if any(marker in cell["source"] for marker in _MARKERS):
            raise ValueError(f"cell {grade_id(cell)!r} holds a marker: the released notebook is needed, not the source")
    return cells


def _match(given: list[Cell], cells: list[SubmittedCell], known: list[dict[str, str]], repairs: list[str]) -> _Match:
    """Find the assignment's cells in the submission: by grade_id, then by the cell's id, then by an unchanged text."""
    match = _Match(given, cells)
    masters = {name: master for master in given if (name := grade_id(master))}
    for index, cell in enumerate(cells):
        name = cell["grade_id"]
        if not name:
            continue
        if name not in masters and any(name in version for version in known):
            continue  # the course has taken it out since
        if name not in masters:
            repairs.append(f"Cell {quoted(name)} is not of this assignment; it is treated as one of your own.")
        elif (first := match.claimed(name)) is None:
            match.of[index] = name
        elif _counts(masters[name]) and cells[first]["source"].strip() == masters[name]["source"].strip():
            # The first is as it was handed out and this one is not: this is the answer.
            del match.of[first]
            match.of[index], match.copies[first] = name, name
        else:
            match.copies[index] = name
    texts = {name: {version[name] for version in known if version.get(name)} for name in masters}
    same = (
        lambda cell, name: bool(masters[name].get("id")) and cell["id"] == masters[name]["id"],
        lambda cell, name: cell["cell_type"] == masters[name]["cell_type"] and cell["source"].strip() in texts[name],
    )
    for is_same in same:
        for name in masters:
            if match.claimed(name) is not None:
                continue
            for index, cell in enumerate(cells):
                if not cell["grade_id"] and index not in match.of and is_same(cell, name):
                    match.of[index] = name
                    repairs.append(f"Cell {quoted(name)} had lost its grading data; they were put back.")
                    break
    return match


def _tell(given: list[Cell], match: _Match, repairs: list[str]) -> None:
    """Say what was deleted, copied or moved."""
    order = [name for _, name in sorted(match.of.items())]
    right = [name for master in given if (name := grade_id(master)) in order]
    if order != right:
        moved = next(name for name, wanted in zip(order, right, strict=True) if name != wanted)
        repairs.append(
            f"The assignment's cells were in another order, from {quoted(moved)} on; they are graded in theirs."
        )
    for name in dict.fromkeys(match.copies.values()):
        master = next(cell for cell in given if grade_id(cell) == name)
        what = "the copies were left out" if _locked(master) else "the copies are treated as cells of your own"
        repairs.append(f"Cell {quoted(name)} stood more than once; {what}.")


def _is_own(index: int, match: _Match) -> bool:
    """Whether this cell of the submission is kept as one of the learner's own."""
    if index in match.copies:
        master = next(cell for cell in match.released if grade_id(cell) == match.copies[index])
        return not _locked(master)
    return index not in match.of


def _rebuilt(
    master: Cell, answer: SubmittedCell | None, own_text: bool, known: list[dict[str, str]], repairs: list[str]
) -> Cell:
    """One cell of the assignment, with the learner's text if it is an answer.

    `known` holds, for each version that learners may have been given, the text of each cell by its name.
    """
    name = grade_id(master)
    cell = json.loads(json.dumps({key: master[key] for key in ("cell_type", "metadata", "source")}))
    if isinstance(master.get("id"), str):
        cell["id"] = master["id"]
    if cell["cell_type"] == "code":
        cell |= {"execution_count": None, "outputs": []}
    if master.get("attachments") and _locked(master):
        cell["attachments"] = master["attachments"]
    if answer is None:
        if _locked(master):
            if all(name in version for version in known):  # else the learner may have been given none
                repairs.append(f"Cell {quoted(name)} was missing; it was put back.")
        else:
            repairs.append(f"The answer cell {quoted(name)} was missing; it counts as empty.")
            if cell["cell_type"] == "code":
                # Not the stub: it would replace an answer that the learner wrote in another cell.
                cell["source"] = "# This answer cell was missing from the submission."
            elif own_text:
                cell["source"] = _ELSEWHERE
        return cell
    if answer["cell_type"] != cell["cell_type"]:
        words = {"code": "a code cell", "markdown": "a text cell"}
        repairs.append(
            f"Cell {quoted(name)} had another type; it is {words.get(cell['cell_type'], 'a raw cell')} again."
        )
    if not _locked(master):
        cell["source"] = answer["source"]
        if answer["attachments"] and cell["cell_type"] == "markdown":
            cell["attachments"] = answer["attachments"]
    elif not _as_given(answer, [version[name] for version in known if name in version]):
        repairs.append(f"The text of cell {quoted(name)} had been changed; it was put back.")
    return cell


def _as_given(cell: SubmittedCell, texts: list[str]) -> bool:
    """Whether a locked cell is as the learner was given it, in this version of the course or in an earlier one.

    nbgrader's checksum in its metadata, made when it was released, says so for versions that nobody kept.
    """
    if cell["source"].strip() in texts:
        return True
    claimed = cell["nbgrader"].get("checksum")
    return isinstance(claimed, str) and claimed == _checksum(cell)


def _checksum(cell: SubmittedCell) -> str:
    """nbgrader's checksum of a locked cell as it stands in a submission; empty for metadata that no release has."""
    from nbformat.notebooknode import NotebookNode
    from nbgrader.utils import compute_checksum

    metadata = {"nbgrader": cell["nbgrader"]}
    try:
        return str(compute_checksum(NotebookNode(**{**cell, "metadata": NotebookNode(metadata)})))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""


def _own(cell: SubmittedCell) -> Cell:
    """One of the learner's own cells: its type and text, and pictures pasted into it."""
    fresh: Cell = {"cell_type": cell["cell_type"], "metadata": {}, "source": cell["source"]}
    if cell["cell_type"] == "code":
        fresh |= {"execution_count": None, "outputs": []}
    elif cell["attachments"]:
        fresh["attachments"] = cell["attachments"]
    return fresh


def _locked(master: Cell) -> bool:
    """Whether a learner may not change it: everything of the assignment's but answers."""
    return not master["metadata"]["nbgrader"].get("solution", False)


def _counts(master: Cell) -> bool:
    return bool(master["metadata"]["nbgrader"].get("grade")) and not _locked(master)


def _known(cell: SubmittedCell, given: list[Cell]) -> bool:
    """Whether a text cell is one that was handed out."""
    return any(cell["source"].strip() == master["source"].strip() for master in given)
