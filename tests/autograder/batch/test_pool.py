"""Work in processes that stay: what kills or holds up a worker costs its own piece alone."""

from __future__ import annotations

import pieces
import pytest

from autograder.batch import pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_piece_that_kills_its_worker_or_never_ends_is_lost_with_a_reason_and_the_others_are_done() -> None:
    done = dict(pool.run(pieces.work, range(8), jobs=2, seconds=3, environment={}))
    assert {piece: result for piece, result in done.items() if piece not in (1, 2, 3)} == {
        0: 0,
        4: 16,
        5: 25,
        6: 36,
        7: 49,
    }
    assert done[1] == pool.Lost("the process that graded it ended (killed, as when memory runs out)")
    assert done[2] == pool.Lost("grading it took more than 3 seconds")
    assert done[3] == pool.Lost("the process that graded it ended (exit status 7)")


def test_leaving_early_ends_the_workers() -> None:
    running = pool.run(pieces.work, [5, 2, 2], jobs=2, seconds=60, environment={})
    assert next(running) == (5, 25)
    running.close()


def test_nothing_to_do_starts_nothing() -> None:
    assert list(pool.run(pieces.work, [], jobs=2, seconds=1, environment={})) == []
