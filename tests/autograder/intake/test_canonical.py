"""A submission rebuilt on the released notebook: only answers and the learner's own cells come from the learner."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_course import ANSWER, ESSAY, ESSAY_STUB, Notebook, answered, cell, code, grade_id, released, text

from autograder.intake.canonical import RefusedError, canonical, parse, stub, with_note


def rebuilt(submitted: Notebook) -> tuple[Notebook, list[str]]:
    result = canonical(submitted, released())
    nbformat.validate(nbformat.from_dict(result.notebook))
    return result.notebook, result.repairs


def names(notebook: Notebook) -> list[str]:
    return [name for cell in notebook["cells"] if (name := grade_id(cell))]


def assert_as_released(notebook: Notebook) -> None:
    """All but the texts of the answers is as handed out, and nothing else carries grading data."""
    masters = [cell for cell in released()["cells"] if grade_id(cell)]
    graded = [cell for cell in notebook["cells"] if grade_id(cell)]
    answers = {"double", "essay"}
    for got, wanted in zip(graded, masters, strict=True):
        differing = {key for key in wanted if got.get(key) != wanted[key]}
        assert differing <= ({"source"} if grade_id(wanted) in answers else set())
    assert all(cell["metadata"] == {} for cell in notebook["cells"] if not grade_id(cell))
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    assert notebook["metadata"] == released()["metadata"]


def test_a_right_submission_keeps_its_answers_and_needs_no_repair() -> None:
    notebook, repairs = rebuilt(answered())
    assert repairs == []
    assert_as_released(notebook)
    assert cell(notebook, "double")["source"] == ANSWER
    assert cell(notebook, "essay")["source"] == ESSAY


def test_the_learners_own_cells_stay_where_they_were_without_metadata_or_outputs() -> None:
    submitted = answered()
    helper = {**code("def helper(): pass"), "metadata": {"tags": ["skip-execution"]}, "outputs": [{"x": 1}]}
    submitted["cells"].insert(2, helper)
    notebook, repairs = rebuilt(submitted)
    assert repairs == []
    sources = [cell["source"] for cell in notebook["cells"]]
    assert sources.index("def helper(): pass") == sources.index(ANSWER) - 1
    assert_as_released(notebook)


def test_a_deleted_test_cell_is_put_back_and_the_learner_is_told() -> None:
    submitted = answered()
    submitted["cells"].remove(cell(submitted, "test-two"))
    notebook, repairs = rebuilt(submitted)
    assert repairs == ["Cell 'test-two' was missing; it was put back."]
    assert_as_released(notebook)


def test_a_cell_that_lost_its_metadata_is_known_by_its_id_or_by_its_text() -> None:
    submitted = answered()
    for name in ("test-two", "double", "essay"):
        cell(submitted, name)["metadata"] = {}
    submitted["cells"][3]["id"] = "something-else"  # test-two: only its text is left
    notebook, repairs = rebuilt(submitted)
    assert_as_released(notebook)
    assert cell(notebook, "double")["source"] == ANSWER
    assert sorted(repairs) == [
        f"Cell '{name}' had lost its grading data; they were put back." for name in ("double", "essay", "test-two")
    ]
    assert sum("assert double(2)" in cell["source"] for cell in notebook["cells"]) == 1


def test_a_notebook_without_any_metadata_or_ids_is_still_graded() -> None:
    submitted = answered()
    for one in submitted["cells"]:
        one["metadata"] = {}
        del one["id"]
    notebook, repairs = rebuilt(submitted)
    assert_as_released(notebook)
    sources = [cell["source"] for cell in notebook["cells"]]
    # The answer cell itself cannot be told from a cell of one's own: its text runs, and no stub replaces it.
    assert sources.index("import math") < sources.index(ANSWER) < sources.index("assert double(2) == 4")
    assert not any("NotImplementedError" in source for source in sources)
    assert "other cells" in cell(notebook, "essay")["source"].lower()  # so that a person looks
    assert "The answer cell 'double' was missing; it counts as empty." in repairs


def test_a_copied_test_cell_is_left_out_and_a_copied_answer_becomes_an_own_cell() -> None:
    submitted = answered()
    submitted["cells"] += [copy.deepcopy(cell(submitted, "test-two")), copy.deepcopy(cell(submitted, "double"))]
    submitted["cells"][-1]["source"] = "def double(x):\n    return x + x"
    notebook, repairs = rebuilt(submitted)
    assert repairs == [
        "Cell 'test-two' stood more than once; the copies were left out.",
        "Cell 'double' stood more than once; the copies are treated as cells of your own.",
    ]
    assert_as_released(notebook)
    assert cell(notebook, "double")["source"] == ANSWER
    assert notebook["cells"][-1]["source"] == "def double(x):\n    return x + x"


def test_of_two_copies_of_a_cell_graded_by_hand_the_answered_one_counts() -> None:
    submitted = answered()
    first = copy.deepcopy(cell(submitted, "essay"))
    first["source"] = ESSAY_STUB
    submitted["cells"].insert(0, first)
    notebook, _ = rebuilt(submitted)
    assert cell(notebook, "essay")["source"] == ESSAY


def test_reordered_cells_are_graded_in_the_assignments_order() -> None:
    submitted = answered()
    submitted["cells"].reverse()
    notebook, repairs = rebuilt(submitted)
    assert_as_released(notebook)
    assert repairs == ["The assignment's cells were in another order, from 'essay' on; they are graded in theirs."]


def test_a_changed_test_is_put_back_and_a_changed_type_too() -> None:
    submitted = answered()
    cell(submitted, "test-two")["source"] = "pass"
    cell(submitted, "double")["cell_type"] = "markdown"
    notebook, repairs = rebuilt(submitted)
    assert repairs == [
        "Cell 'double' had another type; it is a code cell again.",
        "The text of cell 'test-two' had been changed; it was put back.",
    ]
    assert_as_released(notebook)
    assert cell(notebook, "double")["source"] == ANSWER


def test_points_tags_and_partial_grades_in_metadata_are_replaced() -> None:
    submitted = answered()
    for name in ("test-two", "double", "essay"):
        cell(submitted, name)["metadata"]["nbgrader"] |= {"points": 100, "partial": float("nan"), "locked": False}
        cell(submitted, name)["metadata"]["tags"] = ["skip-execution"]
    submitted["metadata"]["kernelspec"] = {"name": "bash"}
    assert_as_released(rebuilt(submitted)[0])


def test_a_cell_of_another_assignment_becomes_an_own_cell() -> None:
    submitted = answered()
    submitted["cells"].append(code("1 + 1", "other-test", grade=True, points=50))
    notebook, repairs = rebuilt(submitted)
    assert repairs == ["Cell 'other-test' is not of this assignment; it is treated as one of your own."]
    assert_as_released(notebook)


def test_null_bytes_and_half_characters_are_taken_out() -> None:
    submitted = answered()
    cell(submitted, "double")["source"] = "def double(x):\0\n    return 2 * x  # \ud800"
    notebook, repairs = rebuilt(submitted)
    assert cell(notebook, "double")["source"] == "def double(x):\n    return 2 * x  # ?"
    assert repairs == ["Cell 'double' held characters that no program may hold, or was too long; it was cut."]


def test_pasted_pictures_stay_and_other_attachments_go() -> None:
    submitted = answered()
    cell(submitted, "essay")["attachments"] = {
        "plot.png": {"image/png": "iVBORw0KGgo=", "text/html": "PHNjcmlwdD4="},
        "x.svg": {"image/svg+xml": "PHN2Zy8+"},
        '"><script>': {"image/png": "AAAA"},
    }
    notebook, repairs = rebuilt(submitted)
    assert cell(notebook, "essay")["attachments"] == {"plot.png": {"image/png": "iVBORw0KGgo="}}
    assert len(repairs) == 2


def test_notebooks_of_older_formats_are_read() -> None:
    old = answered()
    for one in old["cells"]:
        one.pop("id")
        if one["cell_type"] == "code":
            one["input"] = one.pop("source").splitlines(keepends=True)
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": old["cells"], "metadata": {}}]}
    notebook, repairs = rebuilt(parse(json.dumps(old).encode()))
    assert repairs == []
    assert_as_released(notebook)
    assert cell(notebook, "double")["source"] == ANSWER


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b"hello", "it is not JSON: Expecting value at line 1, column 1"),
        (b'{"cells": [', "it is not JSON: Expecting value at line 1, column 12"),
        (b"\xff\xfe{}", "it is not JSON: not UTF-8 text at byte 0"),
        (b"[" * 100_000, "it is not a notebook: nested too deeply"),
        (b"1" * 5000, "it is not a notebook: it holds a number that is far too long"),
        (b"[]", "it is JSON, but not a notebook: it has no list of cells"),
        (b'{"cells": 3}', "it is JSON, but not a notebook: it has no list of cells"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        parse(data)
    assert str(refusal.value) == why


def test_a_notebook_of_another_assignment_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"it holds no cell of this assignment \(another notebook"):
        canonical({"cells": [code("x = 1", "task-of-another-course", grade=True)]}, released())


def test_the_instructors_source_is_not_taken_for_the_release() -> None:
    source = released()
    cell(source, "double")["source"] = "### BEGIN SOLUTION\nx\n### END SOLUTION"
    with pytest.raises(ValueError, match="the released notebook is needed"):
        canonical(answered(), source)


def test_what_stands_for_a_refused_notebook_is_the_release_unanswered_with_a_note() -> None:
    notebook = with_note(stub(released()), "Title", ["It was empty."])
    assert_as_released({**notebook, "cells": notebook["cells"]})
    assert cell(notebook, "essay")["source"] == ESSAY_STUB
    assert notebook["cells"][0]["source"] == "**Title**\n\n- It was empty."
    nbformat.validate(nbformat.from_dict(notebook))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from(["cell_type", "metadata", "source", "id", "outputs", "attachments", "nbgrader", "grade_id", "x"])
known = st.sampled_from(["imports", "double", "test-two", "test-minus-one", "essay", "code", "markdown", "raw"])
nbgrader_keys = st.sampled_from(
    ["grade", "grade_id", "locked", "solution", "task", "points", "checksum", "cell_type", "schema_version", "partial"]
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A right submission, damaged in up to six places."""
    notebook: Any = answered()
    for _ in range(draw(st.integers(1, 6))):
        cells = notebook["cells"]
        at = draw(st.integers(0, max(0, len(cells) - 1)))
        match draw(st.sampled_from(["set", "nbgrader", "metadata", "delete", "copy", "move", "junk", "top"])):
            case "set" if cells and isinstance(cells[at], dict):
                cells[at][draw(keys)] = draw(plain | known)
            case "nbgrader" if cells and isinstance(cells[at], dict) and isinstance(cells[at].get("metadata"), dict):
                inner = cells[at]["metadata"].setdefault("nbgrader", {})
                if isinstance(inner, dict):
                    inner[draw(nbgrader_keys)] = draw(plain | known)
            case "metadata" if cells and isinstance(cells[at], dict):
                cells[at]["metadata"] = draw(plain)
            case "delete" if cells:
                del cells[at]
            case "copy" if cells:
                cells.insert(draw(st.integers(0, len(cells))), copy.deepcopy(cells[at]))
            case "move" if cells:
                cells.insert(draw(st.integers(0, len(cells) - 1)), cells.pop(at))
            case "junk":
                cells.insert(at, draw(plain))
            case "top":
                notebook[draw(st.sampled_from(["metadata", "nbformat", "nbformat_minor", "x"]))] = draw(plain)
    return notebook


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_whatever_is_done_to_a_submission_only_answers_and_own_cells_differ_from_the_release(submitted: Any) -> None:
    try:
        result = canonical(submitted, released())
    except RefusedError:
        return
    assert_as_released(result.notebook)
    nbformat.validate(nbformat.from_dict(result.notebook))
    assert len({cell["id"] for cell in result.notebook["cells"]}) == len(result.notebook["cells"])
    # and done once is done for good
    again = canonical(json.loads(json.dumps(result.notebook)), released())
    assert [cell["source"] for cell in again.notebook["cells"]] == [cell["source"] for cell in result.notebook["cells"]]


@settings(max_examples=200, deadline=None)
@given(plain)
def test_any_json_is_a_notebook_or_refused(content: Any) -> None:
    with contextlib.suppress(RefusedError):
        canonical(parse(json.dumps(content).encode()), released())


def test_own_text_cells_of_the_release_may_be_deleted_or_changed() -> None:
    submitted = answered()
    submitted["cells"] = [cell for cell in submitted["cells"] if grade_id(cell)] + [text("# My notes")]
    notebook, repairs = rebuilt(submitted)
    assert repairs == []
    assert notebook["cells"][-1]["source"] == "# My notes"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_another_system_are_no_change(end: str) -> None:
    submitted = answered()
    for one in submitted["cells"]:
        one["source"] = (one["source"] + "\n# more\n").replace("\n", end)
    given = released()
    for one in given["cells"]:
        one["source"] += "\n# more\n"
    assert canonical(submitted, given).repairs == []


def test_lost_metadata_together_with_the_line_ends_of_windows_loses_no_cell() -> None:
    submitted, given = answered(), released()
    for one in [*submitted["cells"], *given["cells"]]:
        if one["cell_type"] == "code" and "double(" in one["source"]:
            one["source"] += "\n# more"
    for one in submitted["cells"]:
        one["metadata"], one["id"] = {}, "x" + one["id"]
        one["source"] = one["source"].replace("\n", "\r\n")
    repairs = canonical(submitted, given).repairs
    assert not [line for line in repairs if "missing; it was put back" in line]
    assert len([line for line in repairs if "had lost its grading data" in line]) == 3


def _mended() -> Notebook:
    """The course's new version: one test says something else, one locked cell is new."""
    notebook = released()
    cell(notebook, "test-two")["source"] = "assert double(2) == 4.0"
    notebook["cells"].append(code("import cmath", "more-imports"))
    return notebook


def test_a_version_that_the_course_has_changed_since_is_no_change_of_the_learners() -> None:
    assert canonical(answered(), _mended(), [released()]).repairs == []
    theirs = answered()
    cell(theirs, "test-two")["source"] = "assert True"
    (repair,) = canonical(theirs, _mended(), [released()]).repairs
    assert repair == "The text of cell 'test-two' had been changed; it was put back."


def test_the_checksum_that_a_cell_was_released_with_speaks_for_a_version_that_nobody_kept() -> None:
    from nbformat.notebooknode import from_dict
    from nbgrader.utils import compute_checksum

    theirs = answered()
    test = cell(theirs, "test-two")
    test["metadata"]["nbgrader"]["checksum"] = compute_checksum(from_dict(test))
    mended = released()
    cell(mended, "test-two")["source"] = "assert double(2) == 4.0"
    assert canonical(theirs, mended).repairs == []
    test["source"] = "assert True"
    assert canonical(theirs, mended).repairs == ["The text of cell 'test-two' had been changed; it was put back."]
