"""Which submissions share more code than two people who worked alone would.

Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003, the method of MOSS): every run of K tokens is hashed, the
smallest hash of every window is kept, and two programs are compared by the hashes that they share. Names, numbers
and strings are replaced by their kind and comments are left out, so renaming changes nothing. What was released does
not count. Similar is not copied: a person has to look.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import keyword
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.intake.collect import original

K, WINDOW = 12, 6  # tokens of a run; hashes of a window. What two share of K + WINDOW - 1 tokens is always found
_LEAST = 5  # fingerprints without which a program is too short to be compared
_SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_KINDS = {tokenize.NUMBER: "0", tokenize.STRING: "s"}


@dataclass(frozen=True)
class Pair:
    """Two learners, and the share of the shorter one's fingerprints that both have."""

    first: str
    second: str
    share: float


def pairs(submissions: Mapping[str, str], released: str, least: float = 0.8) -> list[Pair]:
    """Pairs that share at least `least` of their code, the most similar first. `submissions`: code by learner."""
    given = set(_hashes(released))
    prints = {name: fingerprints(text) - given for name, text in submissions.items()}
    prints = {name: found for name, found in prints.items() if len(found) >= _LEAST}
    found = [
        Pair(first, second, len(prints[first] & prints[second]) / min(len(prints[first]), len(prints[second])))
        for first, second in itertools.combinations(sorted(prints), 2)
    ]
    return sorted((one for one in found if one.share >= least), key=lambda one: -one.share)


def fingerprints(text: str) -> set[int]:
    """The hashes that stand for a program."""
    hashes = _hashes(text)
    windows = (hashes[i : i + WINDOW] for i in range(max(len(hashes) - WINDOW, 0) + 1))
    return {min(window) for window in windows if window}


def _hashes(text: str) -> list[int]:
    """A hash of each run of K tokens."""
    kinds = list(_kinds(text))
    runs = (" ".join(kinds[i : i + K]) for i in range(len(kinds) - K + 1))
    return [int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest(), "big") for run in runs]


def _kinds(text: str) -> Iterable[str]:
    """The tokens, each name, number and string as its kind; of text that is no Python, what comes before the error."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                yield "v"
            elif token.type not in _SKIPPED:
                yield _KINDS.get(token.type, token.string)
    except (tokenize.TokenError, SyntaxError):
        return


def code(root: Path, assignment: str, student: str) -> str:
    """All code that a learner handed in, as it was handed in."""
    folder = original(root, assignment, student) or root / "submitted" / student / assignment
    return code_of(folder)


def code_of(folder: Path) -> str:
    """The code cells of all notebooks in a folder; what cannot be read is left out."""
    texts = []
    for path in sorted(folder.glob("*.ipynb")):
        try:
            cells = json.loads(path.read_bytes())["cells"]
            texts += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return "\n".join(texts)
