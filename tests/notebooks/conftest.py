"""The lessons, run once for all tests: their pages and their own tests read the same outputs."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from lesson_run import Lesson


@pytest.fixture(scope="session")
def lesson() -> Callable[[str], Lesson]:
    """lesson("02_batching"): its cells as they lie in notebooks/ and, where a test asks for them, its outputs."""
    return cache(Lesson)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a lesson waits until it was run, perhaps by another process."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(600))
