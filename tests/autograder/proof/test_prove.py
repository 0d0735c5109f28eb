"""`prove` on a small course: it passes a sound bank, and names each way in which tests or bank can be unsound."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from small_course import cell, released, write

from autograder.__main__ import main
from autograder.course.course import Course
from autograder.proof import bank, prove

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning", "ignore::DeprecationWarning")

CONFIG = """
from pathlib import Path
from autograder import kernelspec

c = get_config()
root = Path(__file__).resolve().parent
c.CourseDirectory.course_id = "small"
c.CourseDirectory.root = str(root)
c.Exchange.root = str(root / "exchange")
c.Exchange.cache = str(root / "cache")
c.Autograde.autograde_preprocessors = ["autograder.execute.SandboxedExecute"]
c.Execute.kernel_name = kernelspec.ensure(root)
c.Execute.timeout = 60
c.Execute.extra_arguments = ["--log-level=40"]
"""

WRONG = '"""Added\n\nHint: Try 3.\nCaught by: test-minus-one\n"""\n\ndef double(x):\n    return x + 2\n'
UNSEEN = (
    '"""Large numbers\n\nHint: Try a million.\nCaught by: test-two\n"""\n\ndef double(x):\n    return min(2 * x, 9)\n'
)
RIGHT = '"""A sum"""\n\ndef double(x):\n    return x + x\n'
TOO_STRICT = '"""A float"""\n\ndef double(x):\n    return 2.0 * x\n'
HARD_CODED = '"""The examples"""\n\ndef double(x):\n    return 4 if x == 2 else 0\n'


@pytest.fixture
def course(tmp_path: Path, forked_kernels: None) -> Course:
    source = copy.deepcopy(released())
    cell(source, "double")["source"] = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
    cell(source, "essay")["source"] = "### BEGIN SOLUTION\nIt is.\n### END SOLUTION"
    two = "assert type(double(2)) is int, 'double(2): a float'\nassert double(2) == 4, 'double(2): not 4'"
    cell(source, "test-two")["source"] = two
    cell(source, "test-minus-one")["source"] = "assert double(-1) == -2, f'double(-1): {double(-1)} instead of -2'"
    root = tmp_path / "exercises"
    write(root / "source" / "ps" / "ps.ipynb", source)
    (root / "nbgrader_config.py").write_text(CONFIG)
    return Course(root)


def put(course: Course, **files: str) -> None:
    folder = course.root / "bank" / "ps" / "double"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def test_a_sound_bank_is_proven_on_the_way_of_a_submission(course: Course) -> None:
    put(course, wrong_added=WRONG, right_sum=RIGHT)
    heard: list[str] = []
    outcomes = prove.prove(course, ["ps"], seed=7, say=lambda outcome: heard.append(outcome.variant.label))
    assert [outcome.problem for outcome in outcomes] == [""] * 4
    assert heard == ["stub", "reference", "double/right_sum", "double/wrong_added"]
    assert [(outcome.score, outcome.points) for outcome in outcomes] == [(0, 5), (5, 5), (5, 5), (2, 5)]
    assert outcomes[-1].lost == {"test-minus-one": "AssertionError: double(-1): 1 instead of -2"}


def test_tests_that_pass_wrong_code_or_fail_right_code_are_found_and_the_command_says_so(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(course, wrong_large=UNSEEN, right_float=TOO_STRICT)
    (course.root / "bank" / "ps" / "hard_coded.py").write_text(HARD_CODED)
    monkeypatch.chdir(course.root.parent)
    assert main(["prove", "ps", "--jobs", "2", "--seed", "7"]) == 1
    table = capsys.readouterr().out
    assert "ok    reference" in table
    assert "FAIL  double/wrong_large      5 of 5  keeps all points: the tests do not see this mistake" in table
    assert "FAIL  double/right_float      3 of 5  loses points at test-two" in table
    assert "FAIL  hard_coded              2 of 5  scores 2, not below 2: further hidden inputs are needed" in table
    assert table.endswith("3 not as it should be\nrandom inputs drawn from --seed 7\n")


def test_an_unknown_assignment_is_bad_input(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(course.root.parent)
    assert main(["prove", "ps9"]) == 2
    assert "unknown assignment 'ps9'; known: ps" in capsys.readouterr().err


def variant(kind: str, **more: Any) -> bank.Variant:
    return bank.Variant("ps", "double", f"{kind}_x", kind, "title", "hint", more.get("caught_by", ()), "")


@pytest.mark.parametrize(
    ("kind", "score", "lost", "words"),
    [
        ("stub", 1, {"b": "b: no"}, "scores 1, not 0"),
        ("reference", 4, {"b": "b: no"}, "loses points at b"),
        ("right", 4, {"b": "b: no"}, "loses points at b"),
        ("wrong", 5, {}, "keeps all points"),
        ("wrong", 4, {"b": "b: no"}, "is not caught by a, only by b"),
        ("wrong", 4, {"a": "NameError: name 'np' is not defined"}, "fails at a for a reason of its own"),
        ("wrong", 4, {"a": "AssertionError"}, "its message at a says nothing"),
        ("hard_coded", 2, {"a": "a: no"}, "not below 2"),
    ],
)
def test_each_way_to_be_unsound_has_its_words(kind: str, score: float, lost: dict[str, str], words: str) -> None:
    assert words in prove.judge(variant(kind, caught_by=("a",)), score, 5, lost)


@pytest.mark.parametrize(
    ("kind", "score", "lost"),
    [("stub", 0, {"a": "a: no"}), ("right", 5, {}), ("wrong", 3, {"a": "a: no", "b": "b: no"}), ("hard_coded", 1, {})],
)
def test_what_is_as_it_should_be_has_no_words(kind: str, score: float, lost: dict[str, str]) -> None:
    assert prove.judge(variant(kind, caught_by=("a",)), score, 5, lost) == ""
