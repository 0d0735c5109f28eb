"""Small changes of a reference: which are made, which the tests notice, and what the command says of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.course.course import Course, CourseError
from autograder.course.source import SourceCell
from autograder.proof import mutants

LARGEST = '''def largest(values):
    """The largest value."""
    if len(values) < 1:
        raise ValueError("no values")
    return max(values)
'''


def made_of(code: str) -> list[str]:
    return [mutant.change for mutant in mutants.mutants(SourceCell("answer", "answer", code, 0, frozenset()))]


def test_operators_bounds_order_and_types_are_changed_one_at_a_time() -> None:
    assert made_of("def f(a, b):\n    return a - b") == ["return a - b -> return a + b"]
    assert "return np.float64(x) -> return np.float32(x)" in made_of("def f(x):\n    return np.float64(x)")
    assert "return min(a, b) -> return min(b, a)" in made_of("def f(a, b):\n    return min(a, b)")
    assert set(made_of("def f(n):\n    return n < 1")) == {
        "return n < 1 -> return n <= 1",
        "return n < 1 -> return n >= 1",
        "return n < 1 -> return n < 2",
        "return n < 1 -> return n < 0",
    }


def test_a_docstring_and_the_words_of_an_error_stay() -> None:
    changed = made_of(LARGEST)
    assert "raise ValueError('no values') -> pass" in changed
    assert not [change for change in changed if "no valuesx" in change or "largest value.x" in change]


def course_with(folder: Path, test: str, equivalent: str = "") -> Course:
    cells = [
        {"cell_type": "code", "source": LARGEST, "metadata": {"nbgrader": {"grade_id": "largest", "solution": True}}},
        {
            "cell_type": "code",
            "source": test,
            "metadata": {"nbgrader": {"grade_id": "test", "grade": True, "points": 1}},
        },
    ]
    for name in ("source/tiny", "bank/tiny"):
        (folder / name).mkdir(parents=True)
    (folder / "source/tiny/tiny.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    (folder / "nbgrader_config.py").write_text("", encoding="utf-8")
    (folder / "bank/tiny/equivalent_mutants.toml").write_text(equivalent, encoding="utf-8")
    return Course(folder)


THOROUGH = """assert largest([1, 3, 2]) == 3 and largest([4]) == 4
try:
    largest([])
except ValueError as error:
    assert str(error) == "no values"
else:
    raise AssertionError"""


def test_a_thorough_test_notices_every_mutant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    course = course_with(tmp_path, THOROUGH)
    assert mutants.run(course, "tiny").survivors == []
    assert mutants.main(course, ["tiny"]) == 0
    assert "(100.0%), 0 equivalent" in capsys.readouterr().out


def test_the_command_writes_what_came_of_each_function_and_keeps_the_lines_of_other_assignments(
    tmp_path: Path,
) -> None:
    course = course_with(tmp_path, "assert largest([1, 3, 2]) == 3")
    (tmp_path / "bank/mutants.csv").write_text("header\nother,f,5,5,0,abc\ntiny,old,1,1,0,abc\n", encoding="utf-8")
    mutants.main(course, ["tiny"])
    other, tiny = mutants.table(course)
    assert other == mutants.Row("other", "f", 5, 5, 0, "abc")
    assert (tiny.function, tiny.mutants - tiny.noticed, tiny.equivalent) == ("largest", 5, 0)
    assert tiny.measured_on == mutants.fingerprint(course, "tiny")
    course_with(tmp_path / "changed", THOROUGH)
    assert mutants.fingerprint(Course(tmp_path / "changed"), "tiny") != tiny.measured_on


def test_a_gap_is_listed_and_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    course = course_with(tmp_path, "assert largest([1, 3, 2]) == 3")
    assert mutants.main(course, ["tiny"]) == 1
    assert "survives: largest: if len(values) < 1: -> if len(values) < 2:" in capsys.readouterr().out


def test_a_listed_mutant_counts_as_equivalent_until_a_test_notices_it(tmp_path: Path) -> None:
    change = "raise ValueError('no values') -> pass"
    listed = f'[[equivalent]]\nfunction = "largest"\nchange = "{change}"\nwhy = "max() raises it too."\n'
    lenient = THOROUGH.replace('    assert str(error) == "no values"', "    pass")
    tally = mutants.run(course_with(tmp_path / "lenient", lenient, listed), "tiny")
    assert [mutant.change for mutant in tally.equivalent] == [change]
    assert mutants.run(course_with(tmp_path / "strict", THOROUGH, listed), "tiny").stale == [f"largest: {change}"]


def test_a_malformed_list_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"equivalent_mutants\.toml: KeyError: 'why'"):
        mutants.run(course_with(tmp_path, THOROUGH, '[[equivalent]]\nfunction = "f"\nchange = "c"\n'), "tiny")


def test_a_mutant_that_never_ends_is_stopped_and_counts_as_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "_SECONDS", 0.2)
    course = course_with(tmp_path, "assert largest(range(3)) == 2")
    path = tmp_path / "source/tiny/tiny.ipynb"
    loop = "def largest(values):\n    n = 0\n    while n < 2:\n        n += 1\n    return n"
    path.write_text(path.read_text().replace(json.dumps(LARGEST), json.dumps(loop)), encoding="utf-8")
    survivors = {mutant.change for mutant in mutants.run(course, "tiny").survivors}
    assert not survivors & {"n += 1 -> pass", "while n < 2: -> while True:", "n += 1 -> n -= 1"}
