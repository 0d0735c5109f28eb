"""Speculative decoding in the engine: however the drafts come and whatever else goes on, the answer is the same.

Drafts that were not drawn (look-up, greedy models) leave every answer, sampled ones too, exactly what it is without
them. Where a model draws drafts, a sampled answer is another draw of the same distribution
(`test_speculative_rounds`), and the same one whoever shares the batch.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from functools import cache
from typing import Any

import pytest
import torch
from serving_oracle import (
    TINY,
    Solo,
    blocks_in_use,
    one_thread,  # noqa: F401  (a fixture that is used by being here)
    pool,
    renamed,
    solo_run,
    tiny_model,
)
from speculative_cases import MostlyRight, Script, other_model, source, speculating, speculator_of, with_rows

from reference_impl.cache.paged import PagedCache
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Completion, FinishReason, Output, Request
from reference_impl.engine.step import StepError
from reference_impl.model.llama import Llama
from reference_impl.quantization.model import quantize_model
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import DraftSource
from reference_impl.speculative.speculator import DraftLength, Speculator

SOURCES = ["mostly right", "n-gram", "other model", "itself"]
Pieces = dict[Hashable, list[Output]]


def greedy_pool() -> list[tuple[Request, Solo]]:
    return [(request, solo) for request, solo in pool() if request.sampling.greedy]


@cache
def alone(draft: str, length: DraftLength, request: Request) -> Completion:
    """The answer with nobody else in the engine and room for every draft."""
    engine = speculating(source(draft, {request.id: (request, solo_run(request))}), length, token_budget=64)
    return engine.run([request])[request.id]


def assert_cache_lengths(engine: Engine) -> None:
    """After each step: all tokens of a running answer but the newest are cached, and no draft is."""
    for state in engine.scheduler.running:
        if state.n_output and len(state.tokens) - engine.cache.length(state.id) == 1:
            assert isinstance(engine.cache, PagedCache)
            assert engine.cache.tokens(state.id) == state.tokens[:-1]
        else:
            assert engine.cache.length(state.id) <= len(state.tokens) - 1


def assert_answer(answer: Completion, tokens: tuple[int, ...], logits: torch.Tensor, finish: str, what: str) -> None:
    if answer.finish == FinishReason.CANCELLED:
        assert answer.tokens == tokens[: len(answer.tokens)], what
    else:
        assert (answer.tokens, answer.finish) == (tokens, finish), what
    if answer.tokens:
        assert answer.logits is not None
        assert (answer.logits - logits[: len(answer.tokens)]).abs().max() < 1e-9, what


def assert_nothing_left(engine: Engine) -> None:
    assert engine.idle
    assert not isinstance(engine.cache, PagedCache) or blocks_in_use(engine) == 0
    draft = speculator_of(engine).source
    if isinstance(draft, ModelDraft):
        assert isinstance(draft.cache, PagedCache)
        assert draft.cache.free_blocks == draft.cache.allocator.n_blocks
    swap = engine.scheduler.swap
    assert swap is None or swap.host.free_blocks == engine.config.host_blocks


# --- The answer stays the same --------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("draft", SOURCES)
def test_greedy_answers_equal_plain_greedy_answers_token_by_token(draft: str, k: int) -> None:
    requests = {request.id: (request, solo) for request, solo in greedy_pool()}
    engine = speculating(source(draft, requests), k, token_budget=200)
    for request_id, answer in engine.run([request for request, _ in requests.values()]).items():
        solo = requests[request_id][1]
        assert_answer(answer, solo.tokens, solo.logits, solo.finish, f"request {request_id}")
    assert_nothing_left(engine)


@pytest.mark.parametrize("draft", ["mostly right", "n-gram"])
def test_drafts_that_were_not_drawn_leave_even_sampled_answers_as_they_are(draft: str) -> None:
    engine = speculating(source(draft, {request.id: (request, solo) for request, solo in pool()}), token_budget=200)
    answers = engine.run([request for request, _ in pool()])
    for request, solo in pool():
        assert_answer(answers[request.id], solo.tokens, solo.logits, solo.finish, f"request {request.id}")
    assert 0 < speculator_of(engine).stats.acceptance < 1  # type: ignore[operator]


@pytest.mark.parametrize("sampling", [SamplingParams(), SamplingParams(1.0, seed=1), SamplingParams(2.0, 0, 0.9, 2)])
@pytest.mark.parametrize("k", [1, 3])
def test_the_target_as_its_own_draft_is_accepted_whole_with_k_plus_1_tokens_a_pass(
    k: int, sampling: SamplingParams
) -> None:
    engine = speculating(source("itself", {}), k)
    engine.run([Request("r", (3, 1, 4), 1 + 6 * (k + 1), sampling)])
    stats = speculator_of(engine).stats
    assert (stats.n_passes, stats.n_tokens, stats.tokens_per_pass) == (6, 6 * (k + 1), k + 1)
    assert stats.acceptance == 1.0
    assert (stats.judged, stats.accepted) == ([6] * k, [6] * k)
    assert engine.stats.n_steps == 7


def random_switches(numbers: random.Random) -> dict[str, Any]:
    block_size = numbers.choice([1, 2, 3, 4, 8, 16])
    least = -(-32 // block_size)  # the longest request of the pool needs at most 31 places
    switches: dict[str, Any] = {
        "block_size": block_size,
        "n_blocks": least + numbers.choice([0, 1, 2, least, 4 * least]),
        "prefix_sharing": numbers.random() < 0.6,
        "chunk_size": numbers.choice([None, None, *range(1, 21)]),
        "max_running": numbers.randint(1, 6),
        "token_budget": numbers.choice([6, 7, 8, 12, 40]),
        "batching": numbers.choice(["continuous", "continuous", "continuous", "static"]),
    }
    if numbers.random() < 0.4:
        switches |= {"preemption": "swap", "host_blocks": numbers.choice([2, 16, 200])}
    return switches


@pytest.mark.parametrize("first", [0, 10])
@pytest.mark.parametrize("draft", ["mostly right", "other model"])
def test_in_random_schedules_every_request_equals_its_solo_run(draft: str, first: int) -> None:
    """Random switches, arrivals, cancels and preemptions; also the sampled answers with drafts that a model drew."""
    n_preemptions = n_accepted = n_split = 0
    for seed in range(first, first + 10):
        numbers = random.Random(seed)
        switches = random_switches(numbers)
        length = DraftLength(numbers.randint(1, 6), adaptive=numbers.random() < 0.5)
        chosen = {
            i: renamed(request, i) for i, (request, _) in enumerate(numbers.choices(pool(), k=numbers.randint(3, 7)))
        }
        engine = speculating(source(draft, {i: (r, solo_of(r)) for i, r in chosen.items()}), length, **switches)
        arrivals = sorted((numbers.randrange(12), i) for i in chosen)
        pieces: Pieces = {i: [] for i in chosen}
        step = 0
        while arrivals or not engine.idle:
            while arrivals and arrivals[0][0] <= step:
                engine.add(chosen[arrivals.pop(0)[1]])
            if engine.n_running and numbers.random() < 0.15:
                engine.scheduler.preempt(engine.scheduler.running[-1])
            for output in engine.step():
                pieces[output.request_id].append(output)
            assert_cache_lengths(engine)
            n_split += sum(speculator_of(engine).drafting(state.id).n_passed > 0 for state in engine.scheduler.running)
            if numbers.random() < 0.03:
                victim = numbers.choice(list(chosen))
                if pieces[victim] and pieces[victim][-1].finish is None:
                    pieces[victim].append(engine.cancel(victim))
            step += 1
            assert step < 1000, f"schedule {seed} does not end"
        for i, request in chosen.items():
            answer, what = Completion.of(pieces[i]), f"schedule {seed}, request {i}, {length}, {switches}"
            solo = alone(draft, length, renamed(request, "r")) if not request.sampling.greedy else solo_of(request)
            assert solo.logits is not None
            assert_answer(answer, solo.tokens, solo.logits, solo.finish, what)
        assert_nothing_left(engine)
        n_preemptions += engine.stats.n_preemptions
        n_accepted += sum(speculator_of(engine).stats.accepted)
    assert n_accepted > 0, "the schedules were too easy: nothing was accepted"
    assert n_split > 0, "the schedules were too easy: no round took several passes"
    assert n_preemptions > 0, "the schedules were too easy: nobody was preempted for lack of room"


@cache
def solo_of(request: Request) -> Solo:
    return next(solo for known, solo in pool() if renamed(known, request.id) == request)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_seeded_answer_with_drawn_drafts_is_the_same_for_every_token_budget_alone_and_in_company(k: int) -> None:
    """A budget can cut a round so that its last draft is accepted by a pass without a row for the bonus token."""
    request = Request("r", (3, 1, 4), 20, SamplingParams(1.0, seed=5))
    company = [Request(i, (i, 2, 7), 14, SamplingParams(1.0, seed=i)) for i in range(7)]
    expected = alone("other model", DraftLength(k), request).tokens
    n_waited = 0
    for budget in range(1, 12):
        for others in ([], company[:1], company[:2], company):
            if budget <= len(others):
                continue
            engine = speculating(source("other model", {}), k, token_budget=budget, max_running=1 + len(others))
            for one in (*others[:1], request, *others[1:]):
                engine.add(one)
            outputs: list[Output] = []
            while not engine.idle:
                outputs += [output for output in engine.step() if output.request_id == "r"]
                drafting = speculator_of(engine).drafting("r")
                n_waited += drafting.n_passed == k
            answer = Completion.of(outputs).tokens
            assert answer == expected, f"budget {budget}, {len(others)} other requests"
    assert n_waited > 0, "no round ended without its bonus token: the budgets were too easy"


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
@pytest.mark.parametrize("draft", ["mostly right", "other model"])
def test_a_request_preempted_at_any_step_in_the_middle_of_a_round_gives_the_same_answer(
    draft: str, preemption: str
) -> None:
    request = Request("r", (3, 1, 4, 1, 5), 9, SamplingParams(1.0, seed=5))
    length = DraftLength(5)
    expected = alone(draft, length, request)
    for budget in (2, 4):
        n_steps, at = 1, 0
        while at < n_steps:
            engine = speculating(
                source(draft, {"r": (request, solo_run(request))}),
                length,
                token_budget=budget,
                max_running=2,
                block_size=4,
                n_blocks=16,
                preemption=preemption,
                host_blocks=16,
            )
            engine.add(request)
            outputs: list[Output] = []
            step = 0
            while not engine.idle:
                if step == at and engine.scheduler.running:
                    engine.scheduler.preempt(engine.scheduler.running[0])
                outputs += engine.step()
                assert_cache_lengths(engine)
                step += 1
            n_steps = max(n_steps, step)
            assert Completion.of(outputs).tokens == expected.tokens, f"budget {budget}, preempted before step {at}"
            at += 1
        assert n_steps > 3


# --- Ends inside a draft --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_tokens", range(1, 9))
def test_max_tokens_inside_a_draft_ends_the_answer_there(max_tokens: int) -> None:
    request = Request("r", (3, 1, 4), max_tokens)
    draft = MostlyRight({"r": (request, solo_run(Request("r", (3, 1, 4), 20)))}, wrong=0.0)
    engine = speculating(draft, 5)
    answer = engine.run([request])["r"]
    assert (answer.tokens, answer.finish) == (solo_run(request).tokens, "length")
    assert speculator_of(engine).stats.n_drafted <= max(0, max_tokens - 2)  # no draft that could not be used


def test_a_stop_token_inside_a_draft_ends_the_answer_and_what_was_drafted_after_it_is_dropped() -> None:
    plain = solo_run(Request("r", (3, 1, 4), 12))
    place = next(i for i in range(2, 12) if plain.tokens[i] not in plain.tokens[:i])
    request = Request("r", (3, 1, 4), 12, stop_tokens=frozenset({plain.tokens[place]}))
    engine = speculating(MostlyRight({"r": (request, plain)}, wrong=0.0), 11)
    answer = engine.run([request])["r"]
    assert (answer.tokens, answer.finish) == (plain.tokens[: place + 1], "stop")
    assert engine.stats.n_steps == 2
    assert answer.logits is not None
    assert len(answer.logits) == place + 1
    assert_nothing_left(engine)


def test_an_answer_with_drafts_may_use_the_last_place_of_the_cache() -> None:
    request = Request("r", (3, 1, 4, 1, 5), 12)  # 16 places
    engine = speculating(MostlyRight({"r": (request, solo_run(request))}), 4, block_size=4, n_blocks=4)
    assert engine.run([request])["r"].tokens == solo_run(request).tokens


# --- What fails -----------------------------------------------------------------------------------------------------


def test_another_vocabulary_is_refused() -> None:
    draft = ModelDraft.for_llama(other_model())
    draft.vocab_size = 20
    with pytest.raises(ValueError, match="the draft's vocabulary has 20 tokens, the target's 19"):
        speculating(draft)


def test_a_draft_that_fails_names_its_requests_and_can_be_tried_again() -> None:
    request = Request("r", (3, 1, 4), 8, SamplingParams(1.0, seed=4))
    draft = ModelDraft.for_llama(other_model())
    model = draft.model
    engine = speculating(draft)
    engine.add(request)
    outputs = engine.step()

    def broken(*_: object) -> Any:
        raise ArithmeticError("out of ideas")

    draft.model = broken
    with pytest.raises(StepError, match="request 'r' failed: the draft failed: ArithmeticError: out of ideas"):
        engine.step()
    draft.model = model
    while not engine.idle:
        outputs += engine.step()
    assert Completion.of(outputs).tokens == alone("other model", DraftLength(4), request).tokens
    assert_nothing_left(engine)


def test_a_target_pass_that_fails_keeps_the_drafts_and_the_numbers_for_the_next_try() -> None:
    request = Request("r", (3, 1, 4), 8, SamplingParams(1.0, seed=4))
    expected = alone("other model", DraftLength(4), request)
    for call in range(1, 5):
        engine = speculating(ModelDraft.for_llama(other_model()))
        model, calls = engine.model, [0]

        def sometimes(batch: Any, rows: Any, calls: list[int] = calls, call: int = call, model: Any = model) -> Any:
            calls[0] += 1
            if calls[0] == call:
                raise ArithmeticError("once")
            return model(batch, rows)

        engine.model = sometimes
        engine.add(request)
        outputs: list[Output] = []
        while not engine.idle:
            try:
                outputs += engine.step()
            except StepError:
                assert_cache_lengths(engine)
        assert Completion.of(outputs).tokens == expected.tokens


def test_cancelling_frees_the_draft_too() -> None:
    engine = speculating(ModelDraft.for_llama(other_model()))
    engine.add(Request("r", (3, 1, 4), 8))
    engine.step()
    engine.step()
    engine.cancel("r")
    assert_nothing_left(engine)


def test_every_request_that_ends_is_forgotten_by_the_draft() -> None:
    draft = Script()
    engine = speculating(draft)
    engine.run([Request("a", (1,), 2), Request("b", (2,), 3)])
    assert sorted(map(str, draft.forgotten)) == ["a", "b"]


@pytest.mark.parametrize("n_rows", [15, 23])
def test_a_draft_whose_tables_are_padded_otherwise_changes_no_greedy_answer(n_rows: int) -> None:
    """One request begins with an id that the smaller draft lacks."""
    requests = [Request("a", (1, 2, 3), 12), Request("b", (18, 4), 12), Request("c", (7,), 12)]
    plain = Engine.for_llama(tiny_model(), EngineConfig(n_blocks=64)).run(requests)
    draft = ModelDraft.for_llama(with_rows(n_rows), n_blocks=40, block_size=4, vocab_size=TINY.vocab_size)
    engine = speculating(draft)
    found = engine.run(requests)
    assert {i: answer.tokens for i, answer in found.items()} == {i: answer.tokens for i, answer in plain.items()}
    assert speculator_of(engine).stats.n_drafted > 0


# --- A quantized target ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("draft", ["n-gram", "other model"])
def test_greedy_answers_of_a_quantized_target_stay_what_they_are_without_drafts(draft: str, bits: int) -> None:
    """Rows are multiplied one by one, so a check of several gives the logits of single steps."""
    target = quantize_model(
        Llama(TINY, dtype=torch.float64).randomize(torch.Generator().manual_seed(5), std=0.4), bits, 8
    )
    requests = [request for request, _ in greedy_pool()]
    config = EngineConfig(token_budget=64, n_blocks=64)
    plain = Engine.for_llama(target, config).run(requests)
    speculator = Speculator(source(draft, {}), DraftLength(3))
    found = Engine.for_llama(target, config, strategy=speculator).run(requests)
    assert {i: answer.tokens for i, answer in found.items()} == {i: answer.tokens for i, answer in plain.items()}
    assert sum(speculator.stats.accepted) > 0


# --- A real model ---------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.slow
def test_smollm2_with_look_up_writes_what_it_writes_without() -> None:
    from reference_impl.checkpoints import weights
    from reference_impl.speculative.ngram import NgramDraft

    model, tokenizer = weights.load(dtype=torch.float64)
    prompt = "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n    return"
    requests = [Request("r", tuple(tokenizer.encode(prompt)), 24)]
    config = EngineConfig(n_blocks=16)
    plain = Engine.for_llama(model, config).run(requests)["r"]
    drafted: DraftSource = NgramDraft()
    engine = Engine.for_llama(model, config, strategy=Speculator(drafted))
    assert engine.run(requests)["r"].tokens == plain.tokens
    assert speculator_of(engine).stats.n_passes < 23


@pytest.mark.model
@pytest.mark.slow
def test_smollm2_in_int8_with_look_up_writes_what_it_writes_without() -> None:
    """With the CPU's own kernel, float32 activations: each row is computed alike, alone or among others."""
    from reference_impl.checkpoints import weights
    from reference_impl.speculative.ngram import NgramDraft

    model, tokenizer = weights.load()
    quantize_model(model)
    prompt = "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n    return"
    requests = [Request("r", tuple(tokenizer.encode(prompt)), 32)]
    config = EngineConfig(n_blocks=16)
    plain = Engine.for_llama(model, config).run(requests)["r"]
    speculator = Speculator(NgramDraft())
    assert Engine.for_llama(model, config, strategy=speculator).run(requests)["r"].tokens == plain.tokens
    assert speculator.stats.n_passes < 31
