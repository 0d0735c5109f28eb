"""The field's words: each is explained in a lesson before a lesson uses it, and the glossary has it."""

import re
from collections.abc import Iterator
from functools import cache

import pytest
from lesson_run import LESSONS, ROOT, Lesson

GLOSSARY = (ROOT / "book" / "glossary.md").read_text("utf-8")
TERMS = re.findall(r"^(\S.*)\n  \S", GLOSSARY.split("```{glossary}")[1], re.M)
# Words of school and of everyday use, or defined on the reference pages: a lesson need not explain them.
KNOWN = {"activation", "bandwidth", "bf16", "greedy", "measurement", "throughput", "bound", "GB and GiB"}
AHEAD = re.compile(r"lesson \d", re.I)  # a sentence may name a word ahead if it says which lesson explains it


@cache
def sentences() -> list[tuple[str, str, str]]:
    """(lesson, its cell, a sentence) in the order in which a learner reads, headings, code and sources left out."""
    found: list[tuple[str, str, str]] = []
    for name in LESSONS:
        for cell in Lesson(name).markdown:
            text = cell.source.split("## Sources")[0]
            text = re.sub(r"```.*?```|`[^`]*`|\$[^$]*\$|^#[^\n]*$", "", text, flags=re.S | re.M)
            text = re.sub(r"\[([^\]]*)\]\((?:(\d\d)[a-z]?_\w+\.ipynb)\)", r"\1 lesson \2", text)
            found += [(name, cell.id, one) for one in re.split(r"(?<=[.!?:])\s+|\n", text)]
    return found


def uses(term: str) -> Iterator[int]:
    """Places in `sentences` that use the word, in the singular or the plural."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(term.split(' (')[0])}s?(?![\w-])", re.I)
    return (place for place, (_, _, sentence) in enumerate(sentences()) if pattern.search(sentence))


def explains(term: str, sentence: str) -> bool:
    """The word stands in bold or in italics where it is introduced."""
    word = re.escape(term.split(" (")[0])
    return bool(re.search(rf"\*{{1,2}}(?:\w+ )?\(?{word}\w*", sentence, re.I))


def test_the_glossary_holds_the_field_s_own_words() -> None:
    for term in (
        "compute-bound", "memory-bound", "prefix caching", "PagedAttention", "RadixAttention", "block table",
        "rejection sampling", "continuous batching",
    ):  # fmt: skip
        assert term in TERMS
    assert len(TERMS) == len(set(TERMS))


@pytest.mark.parametrize("term", [term for term in TERMS if term not in KNOWN])
def test_no_word_is_used_before_it_is_explained(term: str) -> None:
    places = list(uses(term))
    assert places, f"no lesson uses {term}: it does not belong in the glossary"
    explained = next((place for place in places if explains(term, sentences()[place][2])), None)
    assert explained is not None, f"no lesson explains {term}; first used in {sentences()[places[0]]}"
    cell = sentences()[explained][:2]
    for place in places[: places.index(explained)]:
        *where, sentence = sentences()[place]
        assert tuple(where) == cell or AHEAD.search(sentence), f"{term} is used before {cell}, in {where}: {sentence}"
