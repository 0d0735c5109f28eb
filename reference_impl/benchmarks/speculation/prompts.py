"""The prompts that speculation is measured on, by kind of text. They are shipped, so everyone measures the same."""

from __future__ import annotations

from pathlib import Path

from reference_impl.checkpoints.tokenizer import Tokenizer

KINDS = ("code", "prose", "structured")
_FOLDER = Path(__file__).parent / "prompts"


def prompts(kind: str) -> list[str]:
    """The texts of a kind, in the order of their names. ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}")
    return [path.read_text(encoding="utf-8") for path in sorted((_FOLDER / kind).glob("*.txt"))]


def prompt_ids(kind: str, tokenizer: Tokenizer, most: int = 256) -> list[list[int]]:
    """Token ids of each prompt: its last `most` tokens."""
    return [tokenizer.encode(text)[-most:] for text in prompts(kind)]
