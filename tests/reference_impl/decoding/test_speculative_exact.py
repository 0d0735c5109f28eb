"""The exact rule: enumeration, not sampling. Whatever p and q, the tokens that come out are the target's.

A rule is a step function of its random numbers. The tests cut [0, 1) at the places where it may step, ask for the
outcome near both ends and in the middle of each piece (it must be one and the same), and weigh it with the length.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from reference_impl.decoding.rejection import (
    accept_or_resample,
    acceptance,
    residual,
    speculative_generate,
    speculative_round,
)
from reference_impl.decoding.sampling import SamplingParams, processed_probs

EDGE = 1e-13


def pieces(*cuts: float) -> list[tuple[float, float]]:
    """[0, 1) cut at `cuts`; pieces too short to look into are left out."""
    ends = sorted({0.0, 1.0, *(cut for cut in cuts if 0 < cut < 1)})
    return [(a, b) for a, b in itertools.pairwise(ends) if b - a > 4 * EDGE]


def places(piece: tuple[float, float]) -> tuple[float, float, float]:
    return piece[0] + EDGE, (piece[0] + piece[1]) / 2, piece[1] - EDGE


def by_hand(p: list[float], q: list[float]) -> list[float]:
    """Cumulative sums of the normalised residual, in plain Python; of p where there is none."""
    more = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    more = more if sum(more) > 1e-15 else p
    return [sum(more[: i + 1]) / sum(more) for i in range(len(more))]


def marginal(p: list[float], q: list[float]) -> tuple[list[float], float]:
    """(distribution of the token that comes out, probability of acceptance), over every draft and all u and v."""
    out, accepted = [0.0] * len(p), 0.0
    for drafted in range(len(q)):
        if q[drafted] == 0:
            continue
        for u in pieces(p[drafted] / q[drafted]):
            for v in pieces(*by_hand(p, q)):
                outcomes = {accept_or_resample(p, q, drafted, *uv) for uv in itertools.product(places(u), places(v))}
                ((was_accepted, token),) = outcomes
                weight = q[drafted] * (u[1] - u[0]) * (v[1] - v[0])
                out[token] += weight
                accepted += weight * was_accepted
    return out, accepted


def distribution(numbers: random.Random, size: int) -> list[float]:
    weights = [numbers.choice([0.0, numbers.random(), numbers.random()]) for _ in range(size)]
    weights[numbers.randrange(size)] += 0.1
    return [weight / sum(weights) for weight in weights]


# --- One token ------------------------------------------------------------------------------------------------------


def test_refused_tokens_are_replaced_from_the_normalised_residual_not_from_its_softmax() -> None:
    """A residual passed through softmax gives [.321, .390, .290] here."""
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    assert residual(p, q).tolist() == [1.0, 0.0, 0.0]
    assert marginal(p, q)[0] == pytest.approx(p, abs=1e-12)


def test_a_greedy_draft_is_judged_by_its_one_hot_distribution_not_by_its_raw_probabilities() -> None:
    """Dividing by the raw probability .5 of the drafted token 2 gives [.6, 0, .4] for this p."""
    p, raw = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    q = processed_probs(torch.tensor(raw, dtype=torch.float64).log(), SamplingParams(temperature=0)).tolist()
    assert q == [0.0, 0.0, 1.0]
    assert marginal(p, q)[0] == pytest.approx(p, abs=1e-12)
    wrongly = [0.0, 0.0, 0.0]  # the same draft, but told the raw probabilities
    for u in pieces(p[2] / raw[2]):
        for v in pieces(*by_hand(p, raw)):
            wrongly[accept_or_resample(p, raw, 2, sum(u) / 2, sum(v) / 2)[1]] += (u[1] - u[0]) * (v[1] - v[0])
    assert wrongly == pytest.approx([0.6, 0.0, 0.4], abs=1e-12)


def test_acceptance_is_the_overlap_of_p_and_q() -> None:
    """Where the draft's probabilities are lost and one-hot ones take their place, only Σ p·q = .29 is accepted, though
    the output is exact all the same.
    """
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    assert acceptance(p, q) == pytest.approx(0.70, abs=1e-15)
    assert marginal(p, q)[1] == pytest.approx(0.70, abs=1e-12)
    one_hot = [[float(i == token) for i in range(3)] for token in range(3)]
    lost = [marginal(p, one_hot[token]) for token in range(3)]
    assert sum(q[token] * lost[token][1] for token in range(3)) == pytest.approx(0.29, abs=1e-12)
    for out, _ in lost:
        assert out == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("p", [[0.5, 0.3, 0.2], [0.1] * 10, [1.0, 0.0], [0.7, 0.1, 0.1, 0.1]])
def test_the_target_as_its_own_draft_is_always_accepted(p: list[float]) -> None:
    assert acceptance(p, p) == pytest.approx(1.0, abs=1e-15)
    for token in (i for i in range(len(p)) if p[i]):
        assert accept_or_resample(p, p, token, math.nextafter(1.0, 0.0), 0.5) == (True, token)


def test_token_0_is_a_token_like_any_other() -> None:
    assert accept_or_resample([1.0, 0.0], [1.0, 0.0], 0, 0.999, 0.0) == (True, 0)
    assert accept_or_resample([1.0, 0.0], [0.5, 0.5], 1, 0.0, 0.999) == (False, 0)
    target = lambda tokens: [[1.0, 0.0]] * len(tokens)
    assert speculative_generate(target, target, [0], 3, 8, random.Random(1)) == ([0] * 8, 2)


def test_every_decision_of_a_round_has_a_number_of_its_own() -> None:
    """A generator seeded inside the loop gives the same number for every drafted token."""
    half = torch.tensor([[0.5, 0.5]] * 4, dtype=torch.float64)
    sure = torch.tensor([[1.0, 0.0]] * 3, dtype=torch.float64)
    numbers = [0.1, 0.2, 0.9]
    assert speculative_round(half, sure, [0, 0, 0], numbers.__getitem__, lambda i: 0.0).tokens == [0, 0, 1]

    class Counting(random.Random):
        def random(self) -> float:
            drawn.append(super().random())
            return drawn[-1]

    drawn: list[float] = []
    rng = Counting(5)
    speculative_generate(lambda t: [[0.5, 0.5]] * len(t), lambda t: [[0.5, 0.5]] * len(t), [1], 3, 4, rng)
    assert len(drawn) == 3 + 3 + 1  # three drawn, three judged, one bonus token
    assert len(set(drawn)) == 7


def test_disjoint_supports_refuse_every_token_and_still_give_the_target() -> None:
    p, q = [0.0, 0.0, 0.25, 0.75], [0.5, 0.5, 0.0, 0.0]
    assert marginal(p, q) == (pytest.approx(p, abs=1e-12), 0.0)
    assert acceptance(p, q) == 0.0


def test_the_token_is_distributed_as_the_target_for_many_random_pairs() -> None:
    numbers = random.Random(3)
    for _ in range(60):
        size = numbers.choice([3, 4, 5])
        p, q = distribution(numbers, size), distribution(numbers, size)
        out, accepted = marginal(p, q)
        assert out == pytest.approx(p, abs=1e-12)
        assert accepted == pytest.approx(sum(map(min, p, q)), abs=1e-12)
        assert acceptance(p, q) == pytest.approx(accepted, abs=1e-12)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_lists_arrays_and_tensors_give_the_same(kind: Callable[[list[float]], object]) -> None:
    p, q = kind([0.5, 0.3, 0.2]), kind([0.2, 0.3, 0.5])
    assert acceptance(p, q) == pytest.approx(0.7)
    assert accept_or_resample(p, q, 2, 0.5, 0.0) == (False, 0)
    assert accept_or_resample(p, q, 2, 0.3, 0.0) == (True, 2)


def test_where_p_nowhere_exceeds_q_a_refusal_by_rounding_draws_from_p() -> None:
    assert residual([0.25, 0.75], [0.25, 0.75]).tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.5], [0.2, 0.3, 0.5], 0, 0.1, 0.1), r"over one vocabulary, got \[2\] and \[3\]"),
        (([0.5, 0.5], [0.0, 1.0], 0, 0.1, 0.1), "q gives token 0 probability 0"),
        (([0.5, 0.5], [0.5, 0.5], 2, 0.1, 0.1), r"token 2 is outside the vocabulary, 0\.\.1"),
        (([0.5, 0.5], [0.5, 0.5], 0, 1.0, 0.1), r"u must lie in \[0, 1\), got 1.0"),
        (([0.0, 1.0], [1.0, 0.0], 0, 0.5, 1.0), r"u must lie in \[0, 1\)"),
        (([math.nan, 0.5], [0.5, 0.5], 0, 0.1, 0.1), "p is no distribution"),
        (([0.5, 0.5], [1.5, -0.5], 0, 0.1, 0.1), "q is no distribution"),
    ],
)
def test_what_cannot_be_judged_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        accept_or_resample(*arguments)


# --- A whole round, with distributions that depend on the context ---------------------------------------------------

Context = tuple[int, ...]


class Model:
    """Logits drawn once for every context, turned into probabilities by `params`."""

    def __init__(self, size: int, seed: int, params: SamplingParams, impossible: tuple[int, ...] = ()) -> None:
        self.size, self.seed, self.params, self.impossible = size, seed, params, impossible
        self.known: dict[Context, Tensor] = {}

    def __call__(self, context: Context) -> Tensor:
        if context not in self.known:
            numbers = random.Random(f"{self.seed} {context}")
            logits = [numbers.gauss(0, 1.5) for _ in range(self.size)]
            for token in self.impossible:
                logits[token] = -math.inf
            self.known[context] = processed_probs(torch.tensor(logits, dtype=torch.float64), self.params)
        return self.known[context]


def drafts(q: Model, k: int) -> Iterator[tuple[list[int], Tensor, float]]:
    """Every draft of k tokens that q can draw: (tokens, rows of q, probability)."""
    for drafted in itertools.product(range(q.size), repeat=k):
        rows = torch.stack([q(drafted[:i]) for i in range(k)])
        probability = math.prod(float(rows[i, token]) for i, token in enumerate(drafted))
        if probability:
            yield list(drafted), rows, probability


def joint(p: Model, q: Model, k: int) -> dict[Context, float]:
    """The distribution of k + 1 tokens: one round over every draft and all numbers, then the target alone."""
    total: dict[Context, float] = defaultdict(float)
    for drafted, q_rows, probability in drafts(q, k):
        p_rows = torch.stack([p(tuple(drafted[:i])) for i in range(k + 1)])
        # Which numbers can matter: the draft is refused at place `end`, or nowhere.
        for end in range(k + 1):
            weight = probability
            us = []
            for i in range(min(end + 1, k)):
                threshold = min(1.0, float(p_rows[i, drafted[i]] / q_rows[i, drafted[i]]))
                weight *= threshold if i < end else 1 - threshold
                us.append(threshold - EDGE if i < end else threshold + EDGE)  # just on either side of it
            if weight <= 4 * EDGE:
                continue
            p_end = p_rows[end].tolist()
            cuts = by_hand(p_end, q_rows[end].tolist() if end < k else [0.0] * p.size)
            for v in pieces(*cuts):
                outcomes = [
                    speculative_round(p_rows, q_rows, drafted, us.__getitem__, lambda _, x=x: x) for x in places(v)
                ]
                tokens = tuple(outcomes[0].tokens)
                assert all(tuple(outcome.tokens) == tokens for outcome in outcomes)
                assert (outcomes[0].n_accepted, len(tokens)) == (end, end + 1)
                rest = [tokens]
                for _ in range(k + 1 - len(tokens)):
                    rest = [(*start, token) for start in rest for token in range(p.size)]
                for whole in rest:
                    follows = math.prod(float(p(whole[:i])[whole[i]]) for i in range(len(tokens), k + 1))
                    total[whole] += weight * (v[1] - v[0]) * follows
    return total


@pytest.mark.parametrize(("size", "k"), [(3, 1), (3, 2), (3, 3), (4, 2), (5, 2)])
@pytest.mark.parametrize("top_p", [1.0, 0.9])
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_a_round_has_the_joint_distribution_of_the_target(temperature: float, top_p: float, size: int, k: int) -> None:
    params = SamplingParams(temperature, top_p=top_p)
    p, q = Model(size, 1, params), Model(size, 2, params)
    assert_joint(p, q, k)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_one_hot_draft_has_the_joint_distribution_of_the_target(temperature: float) -> None:
    assert_joint(Model(3, 1, SamplingParams(temperature)), Model(3, 2, SamplingParams(0.0)), 3)


def test_drafts_from_disjoint_supports_have_the_joint_distribution_of_the_target() -> None:
    params = SamplingParams(1.0)
    assert_joint(Model(4, 1, params, impossible=(0, 1)), Model(4, 2, params, impossible=(2, 3)), 2)


def test_the_targets_own_drafts_are_accepted_whole() -> None:
    p = Model(4, 1, SamplingParams(1.0, top_p=0.9))
    for drafted, rows, _ in drafts(p, 3):
        p_rows = torch.cat([rows, p(tuple(drafted)).unsqueeze(0)])
        outcome = speculative_round(p_rows, rows, drafted, lambda _: math.nextafter(1.0, 0.0), lambda _: 0.0)
        assert (outcome.n_accepted, len(outcome.tokens)) == (3, 4)


def assert_joint(p: Model, q: Model, k: int) -> None:
    got = joint(p, q, k)
    for tokens in itertools.product(range(p.size), repeat=k + 1):
        wanted = math.prod(float(p(tokens[:i])[tokens[i]]) for i in range(k + 1))
        assert got[tokens] == pytest.approx(wanted, abs=1e-12), tokens


def test_as_many_rows_as_drafted_tokens_give_no_bonus_token() -> None:
    rows = torch.tensor([[0.5, 0.5], [0.5, 0.5]], dtype=torch.float64)
    outcome = speculative_round(rows, rows, [1, 0], lambda _: 0.9, lambda _: 0.0)
    assert (outcome.tokens, outcome.n_accepted) == ([1, 0], 2)


@pytest.mark.parametrize("n_rows", [1, 4])
def test_a_round_with_the_wrong_number_of_rows_is_refused(n_rows: int) -> None:
    rows = torch.full((4, 2), 0.5)
    with pytest.raises(ValueError, match="2 drafted tokens need as many rows of q and at most one more of p"):
        speculative_round(rows[:n_rows], rows[:2], [0, 1], lambda _: 0.0, lambda _: 0.0)


def test_drafts_over_another_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match=r"over one vocabulary; got p \[2, 3\] and q \[1, 4\]"):
        speculative_round(torch.full((2, 3), 1 / 3), torch.full((1, 4), 0.25), [3], lambda _: 0.0, lambda _: 0.0)


# --- The loop on paper ----------------------------------------------------------------------------------------------


def table(rows: list[list[float]]) -> Callable[[list[int]], list[list[float]]]:
    """A model whose next token depends on the last one."""
    return lambda tokens: [rows[token] for token in tokens]


TARGET = table([[0.0, 0.75, 0.25], [0.5, 0.0, 0.5], [0.25, 0.25, 0.5]])
DRAFT = table([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])


@pytest.mark.parametrize("n_tokens", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_the_loop_makes_exactly_the_tokens_asked_for(k: int, n_tokens: int) -> None:
    tokens, passes = speculative_generate(TARGET, DRAFT, [0], k, n_tokens, random.Random(2))
    assert len(tokens) == n_tokens
    assert -(-n_tokens // (k + 1)) <= passes <= n_tokens


def test_the_loop_with_the_target_as_draft_makes_k_plus_1_tokens_a_pass() -> None:
    tokens, passes = speculative_generate(TARGET, TARGET, [0], 4, 20, random.Random(2))
    assert (len(tokens), passes) == (20, 4)


def test_the_loop_without_drafts_draws_the_tokens_of_plain_decoding() -> None:
    tokens, passes = speculative_generate(TARGET, DRAFT, [0], 0, 6, random.Random(9))
    numbers, plain = random.Random(9), [0]
    for _ in range(6):
        cumulative = np.cumsum(TARGET(plain)[-1])
        plain.append(int(np.searchsorted(cumulative, numbers.random(), side="right")))
    assert (tokens, passes) == (plain[1:], 6)


def test_the_loop_needs_a_prompt() -> None:
    with pytest.raises(ValueError, match="needs a prompt"):
        speculative_generate(TARGET, DRAFT, [], 1, 1, random.Random(0))
