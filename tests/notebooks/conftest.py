"""The lessons, run once for all tests: their pages and their own tests read the same outputs."""

from collections.abc import Callable
from functools import cache

import pytest
from lesson_run import Lesson


@pytest.fixture(scope="session")
def lesson() -> Callable[[str], Lesson]:
    """lesson("02_batching"): its cells as they lie in notebooks/ and, where a test asks for them, its outputs."""
    return cache(Lesson)
