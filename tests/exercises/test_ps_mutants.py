"""The tests of the problem sets notice small changes of the references; what no test can notice is listed.

`python -m autograder prove --mutants` measures that and writes `bank/mutants.csv`. It takes minutes, so the table is
read here, its hash says whether it is still true, and one problem set is measured again.
"""

from __future__ import annotations

import pytest
from in_process import COURSE, assignment

from autograder.course.course import Course
from autograder.proof import mutants

NAMES = sorted(path.name for path in (COURSE / "source").iterdir())
AGAIN = NAMES[0]  # the quickest


@pytest.mark.parametrize("name", NAMES)
def test_the_table_has_each_function_and_at_least_97_of_100_of_its_mutants_lose_points(name: str) -> None:
    rows = [row for row in mutants.table(Course(COURSE)) if row.assignment == name]
    assert {row.function for row in rows} == assignment(name).cells.learners_names
    for row in rows:
        assert row.mutants >= 3, row
        assert row.noticed >= 0.97 * row.mutants, row


@pytest.mark.parametrize("name", NAMES)
def test_the_table_was_measured_on_the_problem_set_as_it_is(name: str) -> None:
    measured_on = {row.measured_on for row in mutants.table(Course(COURSE)) if row.assignment == name}
    assert measured_on == {mutants.fingerprint(Course(COURSE), name)}, (
        f"code of {name} has changed: run `python -m autograder prove {name} --mutants` (--course exercises)"
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_measured_again_the_table_is_the_same() -> None:
    course = Course(COURSE)
    tally = mutants.run(course, AGAIN)
    assert tally.stale == []
    assert mutants.rows(course, AGAIN, tally) == [row for row in mutants.table(course) if row.assignment == AGAIN]
