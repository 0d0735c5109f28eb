"""The bank's files are read as they are meant, or refused with the file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.course import CourseError
from autograder.course.source import Source, SourceCell
from autograder.proof import bank

WRONG = '''"""Added instead of doubled

Hint: Try 3: is it
twice as much?
Caught by: test-two, test-minus-one
"""

def double(x):
    return x + 2
'''

NOTEBOOK = Source(
    (
        SourceCell("double", "answer", "def double(x): return 2 * x", 0, frozenset({"double"})),
        SourceCell("half", "answer", "def half(x): return x / 2", 0, frozenset({"half"})),
        SourceCell("test-two", "test", "assert double(2) == 4", 2, frozenset()),
        SourceCell("test-minus-one", "test", "assert double(-1) == -2", 3, frozenset()),
    )
)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / "ps" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_a_wrong_solution_names_its_misconception_its_hint_and_the_tests_that_catch_it(tmp_path: Path) -> None:
    (variant,) = bank.read(put(tmp_path, "double/wrong_added.py", WRONG), "ps")
    assert (variant.function, variant.name, variant.kind) == ("double", "wrong_added", "wrong")
    assert variant.title == "Added instead of doubled"
    assert variant.hint == "Try 3: is it twice as much?"
    assert variant.caught_by == ("test-two", "test-minus-one")
    assert bank.answers(variant, NOTEBOOK) == {"double": WRONG}


def test_a_right_solution_needs_only_a_name_for_its_style(tmp_path: Path) -> None:
    text = '"""A sum"""\n\ndouble = lambda x: x + x\n'
    (variant,) = bank.read(put(tmp_path, "double/right_sum.py", text), "ps")
    assert (variant.kind, variant.title, variant.caught_by) == ("right", "A sum", ())


def test_hard_coded_answers_fill_all_answer_cells(tmp_path: Path) -> None:
    text = '"""The examples"""\ndef double(x):\n    return 4\ndef half(x):\n    return 1\n'
    (variant,) = bank.read(put(tmp_path, "hard_coded.py", text), "ps")
    assert bank.answers(variant, NOTEBOOK) == {"double": text, "half": "pass"}


def test_an_assignment_without_a_bank_has_no_variants(tmp_path: Path) -> None:
    assert bank.read(tmp_path, "ps") == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("double/wrong_a.py", "def double(x):\n    return x\n", "opens with no docstring"),
        ("double/wrong_a.py", '"""Same"""\ndef double(x):\n    return x\n', "needs `Hint: ...` and `Caught by: ...`"),
        ("double/wrong_a.py", WRONG.replace("def double", "def triple"), "does not define double"),
        ("double/wrong_a.py", WRONG + "    return (", "line 10"),
        ("double/other.py", WRONG, "is called wrong_... or right_..."),
    ],
    ids=["no-docstring", "no-hint", "another-function", "syntax", "name"],
)
def test_a_malformed_file_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(CourseError, match=r"ps/double/\w+\.py") as caught:
        bank.read(put(tmp_path, name, text), "ps")
    assert words in str(caught.value)


def test_a_test_that_the_notebook_does_not_have_is_named(tmp_path: Path) -> None:
    (variant,) = bank.read(put(tmp_path, "double/wrong_added.py", WRONG.replace("test-two", "test-2")), "ps")
    with pytest.raises(CourseError, match=r"ps/double/wrong_added\.py: no test is called 'test-2'"):
        bank.answers(variant, NOTEBOOK)


def test_a_function_that_the_notebook_does_not_ask_for_is_named(tmp_path: Path) -> None:
    text = '"""Thrice"""\ndef triple(x):\n    return 3 * x\n'
    (variant,) = bank.read(put(tmp_path, "triple/right_thrice.py", text), "ps")
    with pytest.raises(CourseError, match=r"ps/triple/right_thrice\.py: no answer cell of the notebook defines triple"):
        bank.answers(variant, NOTEBOOK)
