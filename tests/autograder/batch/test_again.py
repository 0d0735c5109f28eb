"""The same class gets the same scores, comments and pages on a machine that is busy with other work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from klass import KINDS, PS, ROOT, hand_in, make_class

sys.path.append(str(ROOT / "scripts"))

import grade_again

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_class(tmp_path / "course")
    for kind in (one for one in KINDS if one.name in ("right", "half", "raises", "dies")):
        hand_in(tmp_path / "course", kind.name, kind)
    return tmp_path / "course"


def test_a_class_graded_twice_beside_a_process_that_never_rests_gets_equal_gradebooks(root: Path) -> None:
    said: list[str] = []
    assert grade_again.grade_rounds(root, PS, rounds=2, jobs=4, hogs=1, say=said.append) == []
    assert [line.partition(":")[0] for line in said] == ["round 1", "round 2"]
    assert all("4 graded" in line for line in said)


def test_a_comment_that_differs_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comments = iter(["It is.", "It is!"])
    monkeypatch.setattr(grade_again, "grade_class", lambda *_: type("Graded", (), {"results": []})())
    monkeypatch.setattr(grade_again, "outcome", lambda *_: {"comment on ada, ps, essay": next(comments)})
    found = grade_again.grade_rounds(root, PS, rounds=2, jobs=1, hogs=0, say=lambda text: None)
    assert found == ["round 2: comment on ada, ps, essay differs"]
