"""Every grader of the course is proven, whole: each solution of the bank is graded on the way that a submission goes.

The stub scores 0, the reference the maximum; each wrong solution loses points at the test that names its mistake, and
its learner reads the bank's hint; each differently written right one keeps all; knowing the visible examples earns less
than 40 %. The same on the command line is `python -m autograder prove`.
"""

from __future__ import annotations

import os
import secrets

import pytest
from in_process import COURSE

from autograder.course.course import Course
from autograder.proof import bank, prove
from autograder.sandbox import warm_kernels


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_every_solution_of_the_bank_is_judged_right_in_the_sandbox() -> None:
    course, seed = Course(COURSE), secrets.randbelow(2**32)
    names = course.assignments()
    with warm_kernels.fork_server():
        outcomes = prove.prove(course, names, os.cpu_count() or 1, seed)
    wrong = [outcome for outcome in outcomes if outcome.problem]
    assert not wrong, f"{prove.table(wrong, messages=True)}\nto repeat it: python -m autograder prove --seed {seed}"
    assert len(outcomes) == sum(len(bank.read(course.root / prove.BANK, name)) + 2 for name in names)
    assert all((course.root / "hints" / f"{name}.toml").is_file() for name in names)
