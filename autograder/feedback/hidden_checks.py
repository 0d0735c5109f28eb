"""What a learner is told of a check in a hidden part of a test: what was checked, for which kind of input, what came.

The message is not cleaned of hidden values. It is built from what holds none: the check's own name for
what it checks, the kinds of the inputs, texts that the test's author wrote out, and what the learner's function
returned, unless a part of the input or of the expected value is found in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from autograder.checks import CheckError, _cut, _untensor

_MOST = 20_000  # values that are looked at
_COMMON = {"0", "1", "-1", "2", "nan", "inf", "none", "true", "false", "dtype", "array", "float32", "float64", "shape"}


def check(error: CheckError) -> str:
    """A failed check of ours."""
    about = error.check
    if about is None:
        return "a check that is not shown does not hold"
    lines = [f"{about.what}: {error.why}"]
    if about.given is not None:
        lines.append(f"  for input: {kind(about.given)} (hidden)")
    if shares_nothing(about.got_shown, [about.given, about.expected, about.expected_shown]):
        lines.append(f"  got:       {about.got_shown}")
    elif about.got is not None:
        lines.append(f"  got:       {kind(about.got)}")
    return "\n".join(lines)


def assertion(source: str, line: int) -> str:
    """A failed `assert` on this line of the test: its message as far as it is written out, with dots for values."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or 0) and node.msg is not None:
            parts = node.msg.values if isinstance(node.msg, ast.JoinedStr) else [node.msg]
            texts = [part.value if isinstance(part, ast.Constant) else "..." for part in parts]
            if all(isinstance(text, str) for text in texts) and any(re.search(r"\w", str(text)) for text in texts):
                return "".join(map(str, texts))
    return "a condition that is not shown does not hold"


def exception(text: str, code: str) -> str:
    """The text of an exception that the learner's code raised: shown if it stands so in the line that raised it."""
    return text if text and text in code else ""


def kind(value: Any) -> str:
    """What sort of value it is: its type and size."""
    value = _untensor(value)
    if value is None or isinstance(value, bool):
        return "None" if value is None else "a truth value"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        lines = value.count("\n") + 1
        return f"a text of {len(value)} characters" + (f" in {lines} lines" if lines > 1 else "")
    if type(value).__module__ == "numpy":
        shape = tuple(getattr(value, "shape", ()))
        return f"an array of {value.dtype} with shape {shape}" if shape else f"a number ({value.dtype})"
    if isinstance(value, tuple) and len(value) <= 6:
        return ", ".join(map(kind, value)) or "nothing"
    if isinstance(value, (list, tuple, dict, set)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a value of type {_cut(type(value).__name__)}"


def shares_nothing(text: str, hidden: Sequence[object]) -> bool:
    """Whether no word or number of the text stands in the hidden values."""
    words = set(_words(text))
    known: set[str] = set()
    for value in hidden:
        for count, word in enumerate(_atoms(value)):
            known.add(word)
            if count >= _MOST:
                return False
    return not words & known and not any(len(word) > 3 and word in text.lower() for word in known)


def _atoms(value: Any) -> Iterator[str]:
    value = _untensor(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _atoms(item)
    elif isinstance(value, (str, bytes)):
        yield from _words(str(value))
    elif value is not None:
        yield from _words(repr(value))


def _words(text: str) -> Iterator[str]:
    """Words and numbers, numbers in one form."""
    for word in re.findall(r"[-+]?[\w.]*\w", text.lower()):
        try:
            word = f"{float(word):.6g}"
        except ValueError:
            word = word.strip("-+.")
        if word and word not in _COMMON:
            yield word
