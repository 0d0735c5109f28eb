"""The whole path: release, hand in, collect, autograde, feedback and export, all through nbgrader."""

from __future__ import annotations

import csv
import json
import re
import time
from pathlib import Path

import pytest
from ps3_course import PS3, ROOT, GradedCourse, write_submission

from autograder.batch.scores import Result
from autograder.commands.grade import grade, summary
from autograder.course.course import CourseError, open_nbgrader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first test pays for grading the whole course, also on a busy machine
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


@pytest.fixture
def results(graded_course: GradedCourse) -> dict[str, Result]:
    return {result.student: result for result in graded_course.graded.results}


def test_a_right_submission_gets_every_automatic_point_and_waits_for_the_written_answer(
    results: dict[str, Result],
) -> None:
    right = results["right"]
    assert (right.score, right.max_score, right.by_hand, right.lost) == (64, 60, 6, [])


def test_a_submission_with_two_mistakes_loses_exactly_the_cells_of_these_mistakes(results: dict[str, Result]) -> None:
    result = results["two-mistakes"]
    assert {cell.name: cell.points for cell in result.lost} == {
        "group-scale-and-integers": 4,  # max|w| / 128
        "group-ties-to-even": 3,
        "group-of-zeros": 2,  # its hidden part has small weights, whose scale is checked too
        "groupwise-last-group-may-be-shorter": 3,  # the last group dropped
    }
    assert (result.score, result.by_hand) == (52, 6)


def test_a_lost_point_comes_with_what_was_expected_what_came_and_the_input(results: dict[str, Result]) -> None:
    reasons = {cell.name: cell.reason for cell in results["two-mistakes"].lost}
    assert "expected:  [127, 0, 2, 2, 0, -2, 4, -126]" in reasons["group-ties-to-even"]
    assert "got:       [128, " in reasons["group-ties-to-even"]
    assert "for input: [127.0, 0.5, 1.5" in reasons["group-ties-to-even"]


def test_a_cell_that_raises_costs_its_own_points_only_and_is_named(results: dict[str, Result]) -> None:
    result = results["raises"]
    lost = {cell.name: cell for cell in result.lost}
    # The round trip is graded with the course's own pack_int4.
    assert set(lost) == {"pack-order", "pack-odd-count", "what-would-you-store"}
    assert all(cell.score == 0 for cell in lost.values())
    assert result.stopped == ["cell pack raised NameError: name 'BIT' is not defined"]
    assert "cell pack raised" in lost["pack-order"].reason
    assert lost["what-would-you-store"].reason == "no answer was written"
    assert (result.score, result.by_hand) == (60, 0)


def test_a_submission_that_is_not_json_is_named_and_the_others_are_graded(results: dict[str, Result]) -> None:
    result = results["not-json"]
    assert result.problem == f"{PS3}.ipynb: it is not JSON: Expecting value at line 1, column 12"
    assert (result.score, result.by_hand) == (0, 0)
    assert [name for name, result in results.items() if not result.problem] == [
        "chatty", "hard-coded", "raises", "renamed", "right", "two-mistakes",
    ]  # fmt: skip


def test_a_renamed_notebook_is_graded_and_the_repair_is_named(results: dict[str, Result]) -> None:
    result = results["renamed"]
    assert (result.score, result.problem) == (64, "")
    assert f"The notebook was called 'my homework.ipynb'; it was given its name {PS3}.ipynb back." in result.repairs


def test_the_learner_reads_what_was_repaired_or_refused(graded_course: GradedCourse) -> None:
    for student, words in {"not-json": "could not be graded: it is not JSON", "renamed": "was called"}.items():
        page = (graded_course.work / "feedback" / student / PS3 / f"{PS3}.html").read_text(encoding="utf-8")
        assert words in page


def test_output_on_standard_error_costs_nothing_and_torch_tensors_are_welcome(results: dict[str, Result]) -> None:
    assert results["chatty"].lost == []


def test_hard_coding_the_visible_examples_earns_less_than_40_percent(results: dict[str, Result]) -> None:
    automatic = 64
    assert 0 < results["hard-coded"].score < 0.4 * automatic


def test_the_csv_holds_the_scores_of_all_submissions(graded_course: GradedCourse) -> None:
    with graded_course.graded.csv.open(encoding="utf-8") as file:
        rows = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert rows == {result.student: (result.score, 60) for result in graded_course.graded.results}
    assert rows["right"] == (64, 60)
    assert rows["two-mistakes"] == (52, 60)
    assert rows["raises"] == (60, 60)
    assert rows["not-json"] == (0, 60)


def test_formgrader_shows_the_same_scores(graded_course: GradedCourse) -> None:
    api = open_nbgrader(graded_course.course, graded_course.work)
    shown = {row["student"]: row for row in api.get_submissions(PS3)}
    assert shown["right"]["score"] == 64
    assert shown["right"]["needs_manual_grade"]
    assert shown["raises"]["score"] == 60
    assert not shown["raises"]["needs_manual_grade"]
    assert (shown["not-json"]["score"], shown["not-json"]["autograded"]) == (0, True)


def test_feedback_shows_score_and_reason_and_asks_no_other_host_for_anything(graded_course: GradedCourse) -> None:
    page = (graded_course.work / "feedback/two-mistakes" / PS3 / f"{PS3}.html").read_text(encoding="utf-8")
    assert "Score: 52.0 / 60.0" in page
    assert "128 at [0] instead of 127" in page
    assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", page)


def test_the_summary_names_each_submission_its_score_and_each_reason(graded_course: GradedCourse) -> None:
    text = summary(graded_course.graded)
    table = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line and line[0] not in " "}
    assert table["right"][:3] == ["64", "60", "6"]
    assert "it is not JSON" in text
    assert "was called 'my homework.ipynb'" in text
    assert "0 of 3  group-ties-to-even: q: 128 at [0] instead of 127" in text
    assert "cell pack raised NameError: name 'BIT' is not defined" in text


def test_grading_again_grades_only_what_changed(graded_course: GradedCourse) -> None:
    first = {result.student: result.score for result in graded_course.graded.results}
    graded, said = graded_course.again()
    assert {result.student: result.score for result in graded.results} == first
    assert said == []

    submission = graded_course.course.root / "submissions" / PS3 / "renamed"
    (submission / "my homework.ipynb").unlink()
    time.sleep(1)  # nbgrader's times count seconds, and it collects what is newer only
    write_submission(submission, {}, base="two-mistakes")
    graded, said = graded_course.again()
    assert [line for line in said if line.startswith("autograde")] == ["autograde [1/1] renamed"]
    assert {result.student: result.score for result in graded.results} == first | {"renamed": 52}


def test_the_repositorys_released_bundle_is_what_the_source_gives_today(graded_course: GradedCourse) -> None:
    made = json.loads((graded_course.work / "release" / PS3 / f"{PS3}.ipynb").read_text(encoding="utf-8"))
    kept = json.loads((ROOT / "exercises/release" / PS3 / f"{PS3}.ipynb").read_text(encoding="utf-8"))
    assert kept == made, f"run: python -m autograder release {PS3}"


def test_nothing_is_written_into_the_course_itself(graded_course: GradedCourse) -> None:
    assert {path.name for path in graded_course.course.root.iterdir()} == {
        "nbgrader_config.py",
        "source",
        "submissions",
    }


def test_an_unknown_assignment_is_refused_with_the_known_ones(graded_course: GradedCourse, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=f"unknown assignment 'ps9'; known: {PS3}"):
        grade(graded_course.course, "ps9", tmp_path)
