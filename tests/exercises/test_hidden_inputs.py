"""Each problem set draws hidden inputs from the submission's seed: graded again, it meets the same ones."""

from __future__ import annotations

from typing import Any

import pytest
from in_process import COURSE, assignment

from autograder import checks
from autograder.proof import in_process

NAMES = sorted(path.name for path in (COURSE / "source").iterdir())


def compared(name: str, seed: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Input and expected value of each check that the reference passes, with this seed."""
    found: list[tuple[str, str]] = []

    class Noted(checks._Check):
        def __init__(self, expected: Any, got: Any, given: Any, *more: Any, **named: Any) -> None:
            found.append((repr(given), repr(expected)))
            super().__init__(expected, got, given, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(checks, "_Check", Noted)
        patched.setenv("AUTOGRADER_SEED", seed)
        assert list(in_process.failures(assignment(name).cells, {})) == []
    return found


@pytest.mark.parametrize("name", NAMES)
def test_hidden_inputs_follow_from_the_seed_and_fixed_ones_stand_beside_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again, other = (compared(name, seed, monkeypatch) for seed in ("1", "1", "2"))
    assert first == again
    drawn, fixed = set(first) - set(other), set(first) & set(other)
    assert len(drawn) >= 10
    assert len(fixed) >= 10
