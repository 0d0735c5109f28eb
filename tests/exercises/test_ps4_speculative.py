"""Problem set 4: its reference agrees with the course's own arithmetic and greedy rule, and the exact rule is exact.

What the bank's wrong and right solutions earn is in test_proven.py.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from in_process import assignment
from released import cells, check_bundle, check_notebook

from reference_impl.bounds import arithmetic
from reference_impl.commands import speculate
from reference_impl.decoding import greedy

PS4 = assignment("ps4_speculative")


@pytest.fixture(scope="module")
def solved() -> dict[str, Any]:
    return PS4.solved()


@pytest.mark.parametrize("seed", [None, "1", "2", "3"])
def test_the_reference_passes_every_test_cell(seed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed:
        monkeypatch.setenv("AUTOGRADER_SEED", seed)
    assert PS4.lost({}) == {}


def test_rounds_and_reports_are_those_of_the_course(solved: dict[str, Any]) -> None:
    rng = random.Random(7)
    for _ in range(50):
        lines = []
        for _ in range(rng.randint(1, 6)):
            target = [rng.choice("ab:") for _ in range(rng.randint(1, 6))]
            draft = [rng.choice("ab:") for _ in target[1:]]
            assert solved["accept_greedy"](draft, target) == greedy.accept_greedy(draft, target)
            lines.append(f"draft: {' '.join(draft)} | target: {' '.join(target)}")
            assert solved["parse_round"](lines[-1]) == speculate.parse_round(lines[-1])
        text = "\n\n".join(lines)
        assert solved["speculative_report"](text) == speculate.speculative_report(text)


def test_expected_tokens_and_the_best_length_are_those_of_the_course(solved: dict[str, Any]) -> None:
    for alpha in (0.0, 0.1, 0.5, 0.8, 0.97, 1.0):
        for k in (0, 1, 4, 20):
            assert solved["expected_tokens"](alpha, k) == pytest.approx(arithmetic.expected_tokens(alpha, k), rel=1e-12)
    for alpha in (0.0, 0.3, 0.55, 0.8, 0.93):
        for cost in (0.01, 0.07, 0.21, 0.6, 1.2):
            assert solved["best_draft_length"](alpha, cost) == arithmetic.best_draft_length(alpha, cost)


def test_a_tie_between_one_and_two_guesses_goes_to_one(solved: dict[str, Any]) -> None:
    assert solved["best_draft_length"](0.5, 0.2) == 1  # 1.5 / 1.2 = 1.75 / 1.4


def test_the_exact_rule_gives_the_targets_distribution_in_fractions() -> None:
    """The theorem itself, without a rounding: min(p, q) plus what is rejected, spread over the residual, is p."""
    rng = random.Random(8)
    for _ in range(30):
        p, q = ([Fraction(rng.randint(0, 9)) for _ in range(4)] for _ in range(2))
        if not (sum(p) and sum(q)):
            continue
        p, q = [x / sum(p) for x in p], [x / sum(q) for x in q]
        residual = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
        rejected = 1 - sum(min(a, b) for a, b in zip(p, q, strict=True))
        total = sum(residual)
        spread = [rejected * r / total if total else Fraction(0) for r in residual]
        assert [min(a, b) + s for a, b, s in zip(p, q, spread, strict=True)] == p


def test_sampled_text_follows_the_target_whatever_the_draft(solved: dict[str, Any]) -> None:
    """10,000 texts of two tokens; each frequency within 4.5 standard deviations, which 1 run in 10,000 exceeds."""
    target = solved["table"]([[0.7, 0.2, 0.1]] * 3, [[0.1, 0.1, 0.8], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]])
    draft = solved["table"]([[0.2, 0.3, 0.5]] * 3)
    rng, n = np.random.default_rng(9), 10_000
    counts = np.zeros((3, 3))
    for _ in range(n):
        (first, second), _ = solved["speculative_generate"](target, draft, [0], 2, 2, rng)
        counts[first, second] += 1
    right = np.array([0.7, 0.2, 0.1])[:, None] * np.array([[0.1, 0.1, 0.8], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]])
    assert (np.abs(counts / n - right) <= 4.5 * np.sqrt(right * (1 - right) / n)).all()


def test_the_numbers_in_the_text_are_the_courses() -> None:
    assert arithmetic.expected_tokens(0.8, 4) == pytest.approx(3.3616)
    speeds = [round(arithmetic.speculative_speedup(0.8, k, 0.1), 3) for k in range(8)]
    assert speeds == [1.0, 1.636, 2.033, 2.271, 2.401, 2.46, 2.47, 2.448]


def test_the_written_answers_numbers_follow_from_the_question() -> None:
    assert arithmetic.best_draft_length(0.7, 1 / 20) == 6
    tokens = arithmetic.expected_tokens(0.7, 6)
    assert round(tokens, 2) == 3.06
    assert round(tokens / 0.026) == 118
    assert arithmetic.speculative_speedup(0.7, 5, 0.05) == pytest.approx(tokens / 1.3, rel=1e-5)
    for k in (4, 7):
        assert arithmetic.speculative_speedup(0.7, k, 0.05) > 0.98 * tokens / 1.3


def test_the_notebook_is_ready_for_release() -> None:
    check_notebook("ps4_speculative", 60)


def test_each_part_with_code_has_three_hints_behind_folds() -> None:
    hints = ["".join(cell["source"]) for cell in cells("ps4_speculative", "release") if cell["id"].startswith("hints-")]
    assert len(hints) == len(PS4.cells.learners_names)
    for said in hints:
        assert said.count("<details><summary>Hint ") == said.count("</details>") == 3


def test_the_released_bundle_is_that_of_the_source_and_gives_nothing_away() -> None:
    check_bundle("ps4_speculative")
