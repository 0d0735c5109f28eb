"""Text that came from a learner, bounded and safe to write anywhere."""

from __future__ import annotations

import unicodedata

# They change the order in which a terminal or a page shows the text around them.
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clip(text: object, most: int, note: bool = True) -> str:
    """The text in at most `most` bytes of UTF-8, with a note of its length where it is cut; empty if it is no text."""
    if not isinstance(text, str):
        return ""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    return data[:most].decode("utf-8", "ignore") + (f"... ({len(data):,} bytes in all)" if note else "")


def visible(text: str) -> str:
    """The text with control characters written out (`\\x1b`), so that printing it steers no terminal.

    New lines and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(letter) if _steers(letter) else letter for letter in text)


def _steers(letter: str) -> bool:
    return letter in _DIRECTIONS or (letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp"))


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
