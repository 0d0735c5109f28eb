"""Text and tasks to calibrate and evaluate with, from library files that the course's models never trained on.

Code is files of Python's standard library, prose their docstrings. Every machine that runs this has the library (PSF
licence), so nothing must be shipped or downloaded; its text differs a little from one Python version to the next. Every
second held-out file is for calibration and the others for evaluation, so no method is judged on text it was fitted to.
SmolLM2 surely read these files in training: its own scores are not clean, but the damage relative to them is.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reference_impl.benchmarks.quality.evaluate import Item
from reference_impl.benchmarks.quality.tasks import tasks
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.training.text import Document, documents

KINDS = ("code", "prose")


@dataclass(frozen=True)
class HeldOut:
    """Documents by use. `digest` identifies their text, so one can see whether two results rest on the same."""

    calibration: tuple[Document, ...]
    evaluation: tuple[Document, ...]

    @property
    def digest(self) -> str:
        everything = hashlib.sha256()
        for document in (*self.calibration, *self.evaluation):
            everything.update(document.text.encode())
        return everything.hexdigest()[:16]


def held_out(found: Sequence[Document] | None = None) -> HeldOut:
    """The held-out files of this Python's library, code and docstrings, or those among the documents `found`."""
    kept = [d for d in (documents(only_held_out=True) if found is None else found) if d.held_out and d.kind in KINDS]
    names = sorted({d.name for d in kept})
    sides = {name: i % 2 for i, name in enumerate(names)}  # a file's code and its docstrings stay on one side
    split: tuple[list[Document], list[Document]] = ([], [])
    for document in kept:
        split[sides[document.name]].append(document)
    return HeldOut(calibration=tuple(split[1]), evaluation=tuple(split[0]))


def windows(
    texts: Sequence[Document], tokenizer: Tokenizer, kind: str, n: int, length: int, seed: int
) -> list[list[int]]:
    """`n` pieces of `length` tokens from the documents of one kind, without overlap, drawn by `seed`.

    ValueError if there is not enough text.
    """
    pieces = list(_pieces([d for d in texts if d.kind == kind], tokenizer, length))
    if len(pieces) < n:
        raise ValueError(f"{n} windows of {length} tokens of {kind} are wanted, the held-out text has {len(pieces)}")
    return random.Random(f"{seed} {kind}").sample(pieces, n)


def _pieces(texts: Sequence[Document], tokenizer: Tokenizer, length: int) -> Iterator[list[int]]:
    """Whole windows of the documents one after another, since a short docstring alone would fill none."""
    tokens: list[int] = []
    for document in texts:
        tokens += tokenizer.encode(document.text + "\n\n", add_special_tokens=False)
    for start in range(0, len(tokens) - length + 1, length):
        yield tokens[start : start + length]


@dataclass(frozen=True)
class Amount:
    """How many windows of how many tokens. Half of the calibration is code, half prose."""

    calibration: int
    code: int  # to evaluate on
    prose: int
    length: int = 256


@dataclass(frozen=True)
class Material:
    """All text that one model is calibrated and evaluated with."""

    calibration: list[list[int]]
    evaluation: dict[str, list[list[int]]]  # kind of text -> windows
    items: dict[str, list[Item]]  # task -> items


def material(texts: HeldOut, tokenizer: Tokenizer, amount: Amount, seed: int = 0, max_context: int = 8192) -> Material:
    """Windows and tasks for one tokenizer; the same for the same seed and text."""

    def cut(documents: Sequence[Document], code: int, prose: int) -> dict[str, list[list[int]]]:
        return {
            kind: windows(documents, tokenizer, kind, n, amount.length, seed)
            for kind, n in (("code", code), ("prose", prose))
        }

    half = amount.calibration // 2
    calibration = cut(texts.calibration, amount.calibration - half, half)
    return Material(
        calibration=calibration["code"] + calibration["prose"],
        evaluation=cut(texts.evaluation, amount.code, amount.prose),
        items=tasks(tokenizer, texts.evaluation, seed, max_context),
    )
