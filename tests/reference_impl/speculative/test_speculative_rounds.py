"""Rounds in the engine: the distribution of what comes out, by enumeration; room for drafts; what is counted."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import pytest
import torch
from serving_oracle import NextToken, one_thread  # noqa: F401  (a fixture that is used by being here)
from speculative_cases import Script, speculator_of
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request, RequestState
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import Draft, Drafting, DraftSource
from reference_impl.speculative.speculator import DraftLength, SpeculationStats, Speculator

SMALL = ModelConfig(
    "small", n_layers=1, d_model=2, n_heads=1, n_kv_heads=1, head_dim=2, d_ff=2, vocab_size=19, max_context=200
)


def small_engine(
    draft: DraftSource | None, length: DraftLength | int = 4, model: Any = None, tokenizer: Any = None, **switches: Any
) -> Engine:
    """An engine around a model without weights."""
    config = EngineConfig(**({"max_running": 4, "token_budget": 16, "n_blocks": 64, "block_size": 4} | switches))
    length = DraftLength(length) if isinstance(length, int) else length
    return Engine(
        model or NextToken(),
        config.build_cache(SMALL, torch.float32, "cpu"),
        config,
        max_context=SMALL.max_context,
        tokenizer=tokenizer,
        strategy=Speculator(draft, length) if draft is not None else None,
        clock=lambda: 0.0,
    )


def stats_of(engine: Engine) -> SpeculationStats:
    return speculator_of(engine).stats


# --- The distribution -----------------------------------------------------------------------------------------------

# Next-token probabilities after each token, such that the target's choice changes at multiples of 1/4 of its number,
# the draft's and acceptance at 1/2 only. What is refused becomes token 2 after 0 and 1, and 1 or 2 after 2.
TARGET = [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
DRAFT = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
MIDDLES = {"draft": (2, 6), "choice": (1, 3, 5, 7), "accept": (2, 6)}  # of the pieces, in eighths


class Table:
    """A model whose next token depends on the last one only."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.logits = torch.tensor(rows, dtype=torch.float64).log()

    def __call__(self, batch: Any, rows: Tensor) -> Tensor:
        return self.logits[batch.tokens[rows]]


class AllNumbers:
    """Stands in for a request's random numbers: runs through every combination of pieces, with its weight."""

    def __init__(self) -> None:
        self.path: list[int] = []  # which piece each number that was asked for lay in
        self.sizes: list[int] = []
        self.known: dict[tuple[int, str], float] = {}

    def restart(self) -> None:
        self.sizes, self.known = [], {}

    def next(self) -> bool:
        """On to the next combination; False after the last."""
        del self.path[len(self.sizes) :]
        while self.path and self.path[-1] == self.sizes[len(self.path) - 1] - 1:
            self.path.pop()
        if not self.path:
            return False
        self.path[-1] += 1
        return True

    def __call__(self, place: int, use: str = "choice") -> float:
        if place == 0:
            return 0.125  # the first token comes with the prompt: let it be the same one always
        if (place, use) not in self.known:
            pieces = MIDDLES[use]
            if len(self.sizes) == len(self.path):
                self.path.append(0)
            self.known[place, use] = pieces[self.path[len(self.sizes)]] / 8
            self.sizes.append(len(pieces))
        return self.known[place, use]

    @property
    def weight(self) -> float:
        weight = 1.0
        for size in self.sizes:
            weight /= size
        return weight


@pytest.mark.parametrize("token_budget", [1, 2, 16])
def test_what_the_engine_writes_has_the_targets_distribution_exactly(
    monkeypatch: pytest.MonkeyPatch, token_budget: int
) -> None:
    """Drafts of a model, drawn and judged over several passes where the budget is small; numbers are met again after a
    refusal, as they are in earnest.
    """
    numbers = AllNumbers()
    monkeypatch.setattr(RequestState, "uniform", lambda state, place, use="choice": numbers(place, use))
    cache = EngineConfig(n_blocks=4, block_size=4).build_cache(SMALL, torch.float32, "cpu")
    engine = small_engine(
        ModelDraft(Table(DRAFT), cache, len(DRAFT), 200), 2, Table(TARGET), max_running=1, token_budget=token_budget
    )
    seen: dict[tuple[int, ...], float] = defaultdict(float)
    more = True
    while more:
        numbers.restart()
        answer = engine.run([Request("r", (0,), 4, SamplingParams(1.0))])["r"].tokens
        seen[answer] += numbers.weight
        more = numbers.next()
    for answer in itertools.product(range(3), repeat=4):
        wanted = float(answer[0] == 0)  # 0.125 lies in the first quarter of [.25, .5, .25]
        for last, token in itertools.pairwise(answer):
            wanted *= TARGET[last][token]
        assert seen[answer] == pytest.approx(wanted, abs=1e-12), answer
    assert 0 < stats_of(engine).acceptance < 1  # type: ignore[operator]


def test_a_look_up_is_accepted_with_the_targets_probability_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """q is one-hot, so Σ min(p, q) = p(1 after 0) = 1/2, and the answer's distribution is the target's."""
    numbers = AllNumbers()
    monkeypatch.setattr(RequestState, "uniform", lambda state, place, use="choice": numbers(place, use))
    engine = small_engine(Script(*[[1]] * 16), 1, Table(TARGET))
    seen: dict[tuple[int, ...], float] = defaultdict(float)
    more = True
    while more:
        numbers.restart()
        seen[engine.run([Request("r", (0,), 3, SamplingParams(1.0))])["r"].tokens] += numbers.weight
        more = numbers.next()
    assert seen == {(0, a, b): TARGET[0][a] * TARGET[a][b] for a in range(3) for b in range(3)}
    assert stats_of(engine).acceptance == 0.5


# --- Room for drafts ------------------------------------------------------------------------------------------------


def widths(engine: Engine) -> list[dict[Any, int]]:
    """Runs until idle; how many tokens of each request went into each pass."""
    passes: list[dict[Any, int]] = []
    schedule = engine.scheduler.schedule

    def observe() -> Any:
        step = schedule()
        if step is not None:
            passes.append({chunk.state.id: len(chunk.tokens) for chunk in step.chunks})
        return step

    engine.scheduler.schedule = observe  # type: ignore[method-assign]
    while not engine.idle:
        engine.step()
    return passes


def test_right_drafts_bring_k_plus_1_tokens_a_pass() -> None:
    engine = small_engine(Script([2, 3, 4], [6, 7, 8]), 3)
    engine.add(Request("r", (0,), 9))
    assert widths(engine) == [{"r": 1}, {"r": 4}, {"r": 4}]


def test_drafts_take_only_the_budget_that_prompts_leave() -> None:
    engine = small_engine(Script([2, 3, 4, 5], [6, 7]), 4, token_budget=6)
    engine.add(Request("r", (0,), 8))
    engine.step()
    engine.add(Request("prompt", (9,) * 8, 1))
    # 2 is checked for nothing, by the row of the answer's own token; then 3 and 4, and 5 by the row after 4.
    assert widths(engine) == [{"r": 1, "prompt": 5}, {"r": 1 + 2, "prompt": 3}, {"r": 1 + 2}]


def test_drafts_that_had_to_wait_are_checked_in_the_next_pass_instead_of_new_ones() -> None:
    engine = small_engine(Script([2, 3, 4, 5]), 4, token_budget=3, max_running=1)
    engine.add(Request("r", (0,), 6))
    # 2 and 3 are checked and 4 with them, since the row after 3 says what comes; then 5, and the target's own token.
    assert widths(engine) == [{"r": 1}, {"r": 3}, {"r": 2}]
    stats = stats_of(engine)
    assert (stats.n_rounds, stats.n_drafted, stats.n_passes) == (1, 4, 2)
    assert (stats.judged, stats.accepted) == ([1, 1, 1, 1], [1, 1, 1, 1])


def test_drafts_preempt_nobody() -> None:
    """4 blocks of 2 tokens: two answers of 4 places fill the cache, and drafts find room only while they are short."""
    engine = small_engine(Script(*[[9] * 4] * 8), 4, n_blocks=4, block_size=2, prefix_sharing=False)
    engine.add(Request("a", (0,), 4))
    engine.add(Request("b", (5,), 4))
    passes = widths(engine)
    assert engine.stats.n_preemptions == 0
    assert all(len(in_pass) == 2 for in_pass in passes)
    assert max(sum(in_pass.values()) for in_pass in passes) > 2


def test_every_running_answer_advances_in_every_pass() -> None:
    engine = small_engine(Script(*[[1] * 6] * 40), 6, token_budget=8)
    for i in range(4):
        engine.add(Request(i, (i,), 10))
    assert all(set(in_pass) == {0, 1, 2, 3} for in_pass in widths(engine))


def test_without_a_draft_the_engine_decodes_one_token_a_pass() -> None:
    engine = small_engine(None)
    engine.add(Request("r", (0,), 4))
    assert widths(engine) == [{"r": 1}] * 4


# --- What is delivered and counted ----------------------------------------------------------------------------------


class Letters:
    def stream(self, *, after_prompt: bool) -> Letters:
        return self

    def push(self, token: int) -> str:
        return chr(ord("a") + token)

    def flush(self) -> str:
        return ""


def test_a_stop_string_inside_a_draft_ends_the_answer_before_itself() -> None:
    engine = small_engine(Script([2, 3, 4, 5, 6]), 5, tokenizer=Letters())
    answer = engine.run([Request("r", (0,), 10, stop_strings=("ef",))])["r"]
    assert (answer.text, answer.tokens, answer.finish, answer.reason) == ("bcd", (1, 2, 3, 4, 5), "stop", "ef")
    assert engine.stats.n_steps == 2


def test_rounds_drafts_and_acceptance_by_position_are_counted() -> None:
    # After 1 the target writes 2, 3, 4, ...: two right and a wrong one; all three right; none right.
    engine = small_engine(Script([2, 3, 9], [5, 6, 7], [0, 10, 11]), 3)
    engine.run([Request("r", (0,), 9)])  # 1 | 2 3 4 | 5 6 7 8 | 9
    stats = stats_of(engine)
    assert (stats.n_rounds, stats.n_drafted, stats.n_passes, stats.n_tokens) == (2, 6, 3, 8)
    assert (stats.judged, stats.accepted) == ([2, 2, 2], [2, 2, 1])
    assert stats.acceptance_by_position == [1.0, 1.0, 0.5]
    assert stats.acceptance == pytest.approx(5 / 6)
    assert stats.tokens_per_pass == pytest.approx(8 / 3)


def test_tokens_through_the_model_are_counted_with_the_drafts_among_them() -> None:
    engine = small_engine(Script([2, 9, 4]), 3)
    engine.run([Request("r", (0,), 7)])  # 1 | 2 3 | 4 | 5 | 6 | 7
    assert (engine.stats.n_prefill_tokens, engine.stats.n_decode_tokens) == (1, 4 + 4)


def test_nothing_measured_is_none() -> None:
    assert (SpeculationStats().acceptance, SpeculationStats().tokens_per_pass) == (None, None)


# --- How many to draft ----------------------------------------------------------------------------------------------


def test_a_fixed_length_stays_and_an_adaptive_one_follows_the_acceptance() -> None:
    always, never = Drafting(judged=100, accepted=100), Drafting(judged=100, accepted=0)
    assert [DraftLength(4).choose(drafting) for drafting in (always, never)] == [4, 4]
    adaptive = DraftLength(8, adaptive=True, cost=0.1)
    assert [adaptive.choose(drafting) for drafting in (always, never)] == [8, 1]


@pytest.mark.parametrize(("cost", "best"), [(0.02, 11), (0.05, 8), (0.1, 6), (0.2, 4)])
def test_at_a_measured_acceptance_of_08_the_length_is_the_best_one_of_the_reference_values(
    cost: float, best: int
) -> None:
    length = DraftLength(20, adaptive=True, cost=cost, prior=0.8)
    assert length.choose(Drafting(judged=1000, accepted=800)) == best


def test_older_rounds_count_less() -> None:
    drafting = Drafting()
    for tokens in ([1, 1, 1, 1, 7], [7]):
        drafting.start([Draft(1)] * 4, 5, memory=0.5)
        drafting.settle(tokens, n_rows=5)
    assert (drafting.judged, drafting.accepted) == (0.5 * 4 + 1, 0.5 * 4)


def test_adaptive_drafts_of_a_bad_source_grow_short_and_of_a_good_one_stay_long() -> None:
    drafted = {}
    for name in ("wrong", "right"):
        engine = small_engine(
            Script(*[[(2 + i + j) % 19 if name == "right" else 18 for j in range(6)] for i in range(0, 700, 7)]),
            DraftLength(6, adaptive=True, cost=0.05),
        )
        engine.run([Request("r", (0,), 60)])
        drafted[name] = stats_of(engine).n_drafted / stats_of(engine).n_rounds
    assert drafted["wrong"] < 2.5
    assert drafted["right"] > 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"most": 0}, "a round drafts at least 1 token, got 0"),
        ({"cost": -1.0}, "costs are in target passes"),
        ({"memory": 1.5}, r"memory and prior lie in 0\.\.1"),
    ],
)
def test_lengths_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DraftLength(**settings)


def test_a_requests_random_numbers_are_its_own_for_each_use_and_plain_choice_keeps_its_numbers() -> None:
    import random

    def state() -> RequestState:
        return RequestState(Request("r", (0,)), arrival=0.0, serial=0, seed=7, max_total=9)

    plain = random.Random(7)
    assert [state().uniform(i) for i in range(3)] == [plain.random() for _ in range(3)]
    one = state()
    drawn = {use: [one.uniform(i, use) for i in range(20)] for use in ("choice", "draft", "accept")}
    assert len({number for numbers in drawn.values() for number in numbers}) == 60
    other = state()
    assert [other.uniform(i, "accept") for i in range(20)] == drawn["accept"]  # whatever else was asked for before
