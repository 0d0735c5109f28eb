"""Measuring speculation: what is replayed is what the engine does, and the figures mean what they say."""

from __future__ import annotations

from itertools import count

import pytest
import torch
from serving_oracle import (
    one_thread,  # noqa: F401  (a fixture that is used by being here)
    tiny_model,
)
from speculative_cases import other_model

from reference_impl.benchmarks.speculation.costs import Costs, Known, Timed, compare, decode, measure_costs
from reference_impl.benchmarks.speculation.measure import (
    Acceptance,
    Answer,
    draft_source,
    overlaps,
    replay,
    write_answers,
)
from reference_impl.benchmarks.speculation.notes import break_even, notes
from reference_impl.benchmarks.speculation.prompts import KINDS, prompts
from reference_impl.cache.interface import ForwardBatch
from reference_impl.cache.recompute import Recompute
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.speculative.drafts import Wanted
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, Speculator

PROMPTS = [[3, 1, 4, 1, 5], [9, 2, 6], [5, 3, 5, 8, 9, 7, 9], [2, 2, 2]]


def answers(n_tokens: int = 21) -> list[Answer]:
    return write_answers(tiny_model(), PROMPTS, n_tokens)


def draft(name: str) -> str | Llama:
    return {"ngram": "ngram", "other model": other_model(), "itself": tiny_model()}[name]


# --- Counting -------------------------------------------------------------------------------------------------------


def test_answers_are_those_of_requests_alone() -> None:
    for answer in answers():
        text = answer.prompt + answer.tokens
        rows = tiny_model()(Recompute(text[:-1]))[len(answer.prompt) - 1 :]
        assert tuple(rows.argmax(-1).tolist()) == answer.tokens
        assert len(answer.tokens) == 21


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("name", ["ngram", "other model", "itself"])
def test_replayed_rounds_are_those_of_the_engine(name: str, k: int) -> None:
    found = replay(draft_source(draft(name), len(PROMPTS), 64), answers(), k).stats
    speculator = Speculator(draft_source(draft(name), len(PROMPTS), 64), DraftLength(k))
    requests = [Request(i, tuple(prompt), 21) for i, prompt in enumerate(PROMPTS)]
    Engine.for_llama(tiny_model(), EngineConfig(n_blocks=16), strategy=speculator).run(requests)
    assert found == speculator.stats


def test_a_replay_leaves_nothing_in_the_source() -> None:
    source = draft_source(other_model(), len(PROMPTS), 64)
    replay(source, answers(), 3)
    replay(source, answers(), 3)
    assert [source.held(i) for i in range(len(PROMPTS))] == [0] * 4  # type: ignore[attr-defined]


def test_figures_of_rounds_counted_by_hand() -> None:
    found = Acceptance(2, (((2, 2), (2, 0), (2, 1), (0, 0)), ((1, 1),)))
    assert found.stats.judged == [4, 2]  # position 2 is judged only behind an accepted position 1
    assert found.stats.accepted == [3, 1]
    assert found.alpha == 4 / 6
    assert found.tokens_per_pass == 9 / 5
    two, one = 1 + 2 / 3 + 4 / 9, 1 + 2 / 3
    assert found.formula == pytest.approx((3 * two + 1 + one) / 5)


def test_without_a_draft_a_pass_brings_one_token() -> None:
    found = Acceptance(4, (((0, 0), (0, 0)),))
    assert (found.alpha, found.tokens_per_pass, found.formula, found.autocorrelation) == (0, 1, 1, 0)
    assert Acceptance(4, ()).formula == 1


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (((1, 1), (1, 0)) * 8, -1.0),  # yes, no, yes, no
        (((1, 1),) * 8 + ((1, 0),) * 8, 1 - 2 / 15 * 8 / 7 * 49 / 56),  # one streak of each
    ],
)
def test_correlation_tells_streaks_from_alternation(rounds: tuple[tuple[int, int], ...], expected: float) -> None:
    found = Acceptance(1, (rounds,))
    assert found.autocorrelation == pytest.approx(expected, abs=0.02)
    assert found.autocorrelation_error == pytest.approx(1 / 15**0.5)


def test_independent_acceptances_agree_with_the_formula_and_are_not_correlated() -> None:
    numbers = torch.rand(40_000, generator=torch.Generator().manual_seed(3)).tolist()
    rounds = []
    while len(numbers) >= 4:
        accepted = 0
        while accepted < 4 and numbers.pop() < 0.7:
            accepted += 1
        rounds.append((4, accepted))
    found = Acceptance(4, (tuple(rounds),))
    assert found.alpha == pytest.approx(0.7, abs=0.01)
    assert found.tokens_per_pass == pytest.approx(2.7731, abs=0.03)  # (1 - 0.7^5) / 0.3
    assert abs(found.autocorrelation) < 3 * found.autocorrelation_error


def test_a_model_overlaps_with_itself_whole_and_with_another_by_the_smaller_probabilities() -> None:
    answer, params = answers(8)[0], SamplingParams(temperature=1.3)
    assert overlaps(tiny_model(), tiny_model(), answer, params) == pytest.approx([1.0] * 8)
    text = answer.prompt + answer.tokens
    p, q = ((model(Recompute(text)) / 1.3).softmax(-1) for model in (tiny_model(), other_model()))
    expected = [
        sum(min(float(a), float(b)) for a, b in zip(p[i], q[i], strict=True))
        for i in range(len(answer.prompt) - 1, len(text) - 1)
    ]
    assert overlaps(tiny_model(), other_model(), answer, params) == pytest.approx(expected, abs=1e-6)


def test_there_are_prompts_of_every_kind_and_an_unknown_kind_is_refused() -> None:
    for kind in KINDS:
        assert len(prompts(kind)) >= 4
        assert all(300 < len(text) < 800 for text in prompts(kind))
    with pytest.raises(ValueError, match="unknown kind of text 'poems'; known: code, prose, structured"):
        prompts("poems")
    with pytest.raises(ValueError, match="a draft is 'ngram' or a model"):
        draft_source("oracle")


# --- Times ----------------------------------------------------------------------------------------------------------


def test_a_prediction_is_tokens_a_pass_over_what_the_pass_costs() -> None:
    costs = Costs(k=4, batch=1, plain=0.010, verify=0.012, draft=0.001)
    assert (costs.draft_cost, costs.verify_cost) == (pytest.approx(0.1), pytest.approx(1.2))
    assert costs.speedup(0.8) == pytest.approx(3.3616 / 1.6)
    assert costs.speedup_at(2.4) == pytest.approx(2.4 / 1.6)
    assert costs.speedup_at(1.5, drafted=2) == pytest.approx(1.5 / (2 * 0.1 + 1.1))  # half the drafts, half the extra


def test_known_drafts_are_all_accepted_so_a_run_times_full_verifications() -> None:
    ticks = count()
    run = decode(tiny_model(), answers(), Speculator(Known(answers()), DraftLength(4)), lambda: float(next(ticks)))
    assert run.tokens == tuple(answer.tokens for answer in answers())
    assert run.stats is not None
    assert run.stats.acceptance == 1
    assert len(run.steps) == 4  # 20 tokens behind the first, five a pass


def test_a_timed_source_notes_calls_and_drafts_as_the_source_does() -> None:
    ticks = count()
    source = Timed(NgramDraft(), lambda: float(next(ticks)))
    order = Wanted("a", [1, 2, 1], 3, SamplingParams(), lambda i: 0.0)
    assert [draft.token for draft in source.propose([order])[0]] == [2, 1, 2]
    assert source.calls == [(1.0, 3, 1)]


class Passes:
    """A clock that a pass of the target moves on by `row` seconds a row and 1 at all, and a draft's by 0.125."""

    def __init__(self, row: float) -> None:
        self.now, self.row = 0.0, row

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("row", [0.0, 0.25])
def test_costs_are_told_apart_and_predict_what_is_measured(row: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, forward = Passes(row), FusedLlama.__call__

    def counted(self: FusedLlama, batch: ForwardBatch, rows: torch.Tensor | None = None) -> torch.Tensor:
        n_rows = len(batch.tokens) if rows is None else len(rows)
        clock.now += 0.125 if self.model is other_model() else 1 + row * (n_rows - 1)
        return forward(self, batch, rows)

    one = answers(41)[:1]
    monkeypatch.setattr(FusedLlama, "__call__", counted)
    costs = measure_costs(tiny_model(), other_model(), one, 4, clock)
    assert (costs.plain, costs.verify, costs.draft) == (1.0, 1 + 4 * row, 0.125)
    found = compare(tiny_model(), other_model(), one, 4, 1, clock)
    assert found.same
    replayed = costs.speedup_at(
        found.acceptance.tokens_per_pass, found.acceptance.stats.n_drafted / found.acceptance.stats.n_passes
    )
    assert found.measured == pytest.approx(replayed)  # with the tokens a pass that really came, exactly
    assert found.predicted == pytest.approx(replayed * found.acceptance.formula / found.acceptance.tokens_per_pass)


def test_too_short_an_answer_cannot_be_timed() -> None:
    with pytest.raises(ValueError, match="too little to measure"):
        measure_costs(tiny_model(), "ngram", answers(1), 4)


# --- What the table says --------------------------------------------------------------------------------------------


def test_the_break_even_acceptance_is_the_least_that_beats_the_look_up() -> None:
    assert break_even(cost=0.2, row=0.0, to_beat=1.86) == 0.80  # 3.3616 / 1.8 at the best k, 4
    assert break_even(cost=1.0, row=0.0, to_beat=1.2) is None


def test_the_notes_count_rows_whose_acceptances_depend_on_each_other() -> None:
    row = {"correlation_error": 0.1, "tokens_per_pass": 2.2, "formula": 2.0, "positions": "0.50 0.60"}
    other = {"correlation": 0.1, "tokens_per_pass": 1.9, "positions": "0.50 0.40"}
    text = " ".join(notes([row | {"correlation": 0.3}, row | other]))
    assert "no accident: 1 of 2 rows" in text
    assert "Position 1 is the lowest in 1 of 2 rows" in text
    assert "-5.0% to +10.0%" in text
