"""The tests of the problem sets notice small changes of the reference; those that nobody can notice are listed."""

from __future__ import annotations

import pytest
from in_process import COURSE

from autograder.course.course import Course
from autograder.proof import mutants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", sorted(path.name for path in (COURSE / "source").iterdir()))
def test_at_least_97_of_100_mutants_lose_points(name: str) -> None:
    tally = mutants.run(Course(COURSE), name)
    assert tally.killed > 50
    assert tally.share >= 0.97, [f"{mutant.function}: {mutant.change}" for mutant in tally.survivors]
    assert tally.stale == []
