"""Feedback pages tell the grades as they are now, or are not released."""

from __future__ import annotations

from datetime import timedelta

import pytest
from klass import PS
from office import Office

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]

LATE = 'c.AssignLatePenalties.plugin_class = "autograder.late.LatePolicy"\nc.LatePolicy.per_day = 0.5'


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """Ada is a day late; her tests give 5 points and her essay waits. Test-two is a bonus."""
    office = Office(
        tmp_path_factory.mktemp("term") / "course", config=f"{LATE}\nc.Points.bonus = {{'ps': ['test-two']}}"
    )
    office.due()
    office.hand_in("ada", late=timedelta(hours=20))
    done = office.nbgrader("autograde", PS)
    assert done.returncode == 0, done.stderr
    assert "checksum" not in done.stderr
    return office


def test_a_page_has_lateness_over_points_by_hand_too_and_a_maximum_without_bonus(office: Office) -> None:
    office.grade_by_hand("ada", 3.0, "Well said.")
    assert office.nbgrader("generate_feedback", PS).returncode == 0
    page = office.page("ada")
    assert "Score: 4.0 / 7.0" in page
    assert "handing in late: 4.0" in page
    assert "Well said." in page


def test_feedback_is_made_anew_after_a_grade_by_hand_without_force(office: Office) -> None:
    office.nbgrader("generate_feedback", PS)
    office.grade_by_hand("ada", 1.0, "On second thoughts.")
    assert office.nbgrader("generate_feedback", PS).returncode == 0
    assert "On second thoughts." in office.page("ada")


def test_old_feedback_is_not_released_and_the_command_to_run_is_told(office: Office) -> None:
    office.nbgrader("generate_feedback", PS)
    submission_secret = office.root / "feedback" / "ada" / PS / "submission_secret.txt"
    submission_secret.write_text("secret")
    office.grade_by_hand("ada", 2.0)
    refused = office.nbgrader("release_feedback", PS)
    assert refused.returncode != 0
    assert (
        f"nothing was released: the feedback of ada is older than the grades; run `nbgrader generate_feedback {PS}`"
        in refused.stderr
    )
    feedback = office.root.parent / "course-exchange" / "llm-serving" / "feedback"
    assert list(feedback.glob("*.html")) == []
    office.nbgrader("generate_feedback", PS)
    submission_secret.write_text("secret")
    released = office.nbgrader("release_feedback", PS)
    assert released.returncode == 0, released.stderr
    assert len(list(feedback.glob("*.html"))) == 1


def test_a_moved_due_date_makes_feedback_old_as_well(office: Office) -> None:
    office.nbgrader("generate_feedback", PS)
    office.due({"ada": timedelta(days=2)})
    assert "older than the grades" in office.nbgrader("release_feedback", PS).stderr
    office.due({"ada": timedelta()})


def test_a_test_that_the_course_has_mended_is_not_told_as_the_learners_change(office: Office) -> None:
    source = office.root / "source" / PS / f"{PS}.ipynb"
    office.edit(source, lambda text: text.replace("assert double(-1) == -2", "assert double(-1) == -2.0"))
    assert office.nbgrader("generate_assignment", PS, "--force").returncode == 0
    assert office.nbgrader("autograde", PS, "--force").returncode == 0
    assert office.nbgrader("generate_feedback", PS).returncode == 0
    page = office.page("ada")
    assert "2.0" in page, "it shows the mended test"
    assert "had been changed" not in page
    assert "What was put right" not in page
