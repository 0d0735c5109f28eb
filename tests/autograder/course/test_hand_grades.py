"""A grade given by hand stays as long as the answer that it judged is the same, whatever else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from klass import PS
from office import Office

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """Ada's essay is graded by hand and one of her tests too; Bob's waits."""
    office = Office(tmp_path_factory.mktemp("term") / "course", "ada", "bob")
    assert office.nbgrader("autograde", PS).returncode == 0
    office.grade_by_hand("ada", 3.5, "Well said.")
    office.grade_by_hand("ada", 1.5, name="test-two")
    return office


def mended(office: Office) -> None:
    """The second test is made stricter, generated anew."""
    source = office.root / "source" / PS / f"{PS}.ipynb"
    office.edit(source, lambda text: text.replace("assert double(-1) == -2", "assert double(-1) == -2.0"))
    assert office.nbgrader("generate_assignment", PS, "--force").returncode == 0


@pytest.mark.parametrize("change", ["nothing", "configuration", "tests"])
def test_regrading_keeps_points_comment_and_state(office: Office, change: str) -> None:
    if change == "configuration":
        office.configure("c.Execute.timeout = 5")
    if change == "tests":
        mended(office)
    done = office.nbgrader("autograde", PS, "--force")
    assert done.returncode == 0, done.stderr
    assert office.state("ada") == (3.5, False, "Well said.")
    assert office.state("ada", "test-two") == (1.5, False, "Well said.")
    assert office.state("bob")[:2] == (0.0, True)
    assert "has changed since it was graded by hand" not in done.stderr


def test_no_export_holds_a_blank_where_a_grade_exists(office: Office) -> None:
    office.nbgrader("autograde", PS, "--force")
    assert office.export("Canvas")["ada"][PS] == "8"
    assert office.export("Moodle")["ada"][PS] == "8"
    questions = office.export("PerQuestion")
    assert questions["ada"][f"{PS}/{PS}/essay"] == "3.5"
    assert questions["ada"][f"{PS}: total"] == "8"
    assert (questions["bob"][f"{PS}/{PS}/test-two"], questions["bob"][f"{PS}: total"]) == ("2", "")


def test_a_batch_that_grades_everything_again_keeps_them_too(office: Office) -> None:
    done = office.autograder("grade", PS, "--course", ".", "--force", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert office.state("ada") == (3.5, False, "Well said.")


def test_another_answer_changed_asks_for_the_test_that_runs_it_and_not_for_the_essay(tmp_path: Path) -> None:
    office = Office(tmp_path / "course", "ada")
    office.nbgrader("autograde", PS)
    office.grade_by_hand("ada", 3.5)
    office.grade_by_hand("ada", 1.5, name="test-two")
    office.hand_in("ada", double="def double(x):\n    return x + x")
    done = office.nbgrader("autograde", PS, "--force")
    assert office.state("ada")[:2] == (3.5, False)
    assert office.state("ada", "test-two")[:2] == (1.5, True)
    assert "ada: the answer test-two has changed since it was graded by hand (1.5 of 2)" in done.stderr


def test_a_changed_answer_asks_again_says_so_and_keeps_its_points_until_then(tmp_path: Path) -> None:
    office = Office(tmp_path / "course", "ada")
    office.nbgrader("autograde", PS)
    office.grade_by_hand("ada", 3.5, "Well said.")
    office.hand_in("ada", essay="On second thoughts, no.")
    done = office.autograder("grade", PS, "--course", ".", "--jobs", "1")
    said = "the answer essay has changed since it was graded by hand (3.5 of 4): please grade it again"
    assert office.state("ada") == (3.5, True, "Well said.")
    assert said in done.stdout
    assert office.export("Canvas")["ada"][PS] == "8.5"
    again = office.nbgrader("autograde", PS, "--force")
    assert again.returncode == 0
    assert office.state("ada")[:2] == (3.5, True), "a second regrade does not take the question back"
    office.grade_by_hand("ada", 1.0)
    office.nbgrader("autograde", PS, "--force")
    assert office.state("ada")[:2] == (1.0, False)
