"""Draft sources: what they propose, from which distribution, and what their caches hold."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import pytest
import torch
from serving_oracle import TINY, one_thread, tiny_model  # noqa: F401  (a fixture that is used by being here)
from speculative_cases import with_rows

from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.cache.paged import PagedCache
from reference_impl.cache.recompute import Recompute
from reference_impl.decoding.sampling import SamplingParams, processed_probs, sample
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import Draft, DraftSource, Wanted
from reference_impl.speculative.ngram import NgramDraft

GREEDY = SamplingParams()


def order(
    tokens: list[int], n: int, params: SamplingParams = GREEDY, request_id: Hashable = "r", seed: int = 3
) -> Wanted:
    numbers = [random.Random(f"{seed} {len(tokens) + i}").random() for i in range(n)]
    return Wanted(request_id, tokens, n, params, numbers.__getitem__)


def proposed(source: DraftSource, tokens: list[int], n: int, **kwargs: Any) -> list[int]:
    (drafts,) = source.propose([order(tokens, n, **kwargs)])
    return [draft.token for draft in drafts]


# --- Look-up --------------------------------------------------------------------------------------------------------


def test_a_look_up_proposes_what_followed_the_last_tokens_before() -> None:
    assert proposed(NgramDraft(), [7, 1, 2, 3, 4, 5, 6, 1, 2, 3], 3) == [4, 5, 6]


def test_the_longest_match_wins_and_of_equal_ones_the_latest() -> None:
    assert proposed(NgramDraft(), [1, 2, 3, 9, 2, 3, 8, 1, 2, 3], 1) == [9]
    assert proposed(NgramDraft(), [2, 3, 9, 2, 3, 8, 2, 3], 1) == [8]


def test_a_copy_that_reaches_the_end_goes_on_with_its_own_beginning() -> None:
    assert proposed(NgramDraft(), [5, 1, 2, 3, 1, 2, 3], 7) == [1, 2, 3, 1, 2, 3, 1]
    assert proposed(NgramDraft(), [4, 4], 3) == [4, 4, 4]


def test_without_a_match_a_look_up_proposes_nothing() -> None:
    assert proposed(NgramDraft(), [1, 2, 3], 4) == []
    assert proposed(NgramDraft(), [1], 4) == []
    assert proposed(NgramDraft(longest=3, shortest=2), [1, 5, 2, 5], 4) == []


def test_look_up_drafts_were_not_drawn_so_their_distribution_is_one_hot() -> None:
    ((draft,),) = NgramDraft().propose([order([1, 2, 1], 1)])
    assert (draft.token, draft.probs) == (2, None)


def test_a_text_that_grows_gives_the_same_drafts_as_a_new_one() -> None:
    numbers = random.Random(4)
    text = [numbers.randrange(3) for _ in range(60)]
    growing = NgramDraft()
    for end in (1, 2, 3, 10, 11, 12, 30, 31, 60):
        assert proposed(growing, text[:end], 5) == proposed(NgramDraft(), text[:end], 5)


def test_a_forgotten_request_leaves_nothing_behind() -> None:
    source = NgramDraft()
    proposed(source, [1, 2, 1, 2], 2)
    source.forget("r")
    source.forget("never seen")
    assert proposed(source, [1, 9, 1], 1) == [9]


@pytest.mark.parametrize(("longest", "shortest"), [(3, 0), (1, 2)])
def test_n_grams_that_make_no_sense_are_refused(longest: int, shortest: int) -> None:
    with pytest.raises(ValueError, match="needs 1 <= shortest <= longest"):
        NgramDraft(longest, shortest)


# --- A model --------------------------------------------------------------------------------------------------------


def model_draft(n_blocks: int = 64, block_size: int = 4, token_budget: int = 512, paged: bool = True) -> ModelDraft:
    model = tiny_model()
    cache: Any = (
        PagedCache(TINY, n_blocks, block_size, torch.float64, debug=True)
        if paged
        else ContiguousCache(TINY, n_blocks, 64, torch.float64)
    )
    return ModelDraft(model, cache, TINY.vocab_size, TINY.max_context, token_budget)


@torch.no_grad()
def expected(wanted: Wanted) -> list[tuple[int, torch.Tensor]]:
    """Drafts and their distributions by recomputing everything for every token."""
    tokens, out = list(wanted.tokens), []
    for i in range(wanted.n):
        probs = processed_probs(tiny_model()(Recompute(tokens))[-1], wanted.sampling)
        tokens.append(int(sample(probs, 0.0 if wanted.sampling.greedy else wanted.uniform(i))))
        out.append((tokens[-1], probs))
    return out


def assert_expected(drafts: list[Draft], wanted: Wanted) -> None:
    wanted_drafts = expected(wanted)
    assert [draft.token for draft in drafts] == [token for token, _ in wanted_drafts]
    for draft, (_, probs) in zip(drafts, wanted_drafts, strict=True):
        if wanted.sampling.greedy:
            assert draft.probs is None
        else:
            assert draft.probs is not None
            assert (draft.probs - probs).abs().max() < 1e-9


@pytest.mark.parametrize("params", [GREEDY, SamplingParams(1.0), SamplingParams(1.5, 5, 0.8)])
@pytest.mark.parametrize("paged", [True, False])
def test_a_model_draws_its_drafts_and_names_the_distribution_they_came_from(
    params: SamplingParams, paged: bool
) -> None:
    wanted = order([3, 1, 4, 1, 5], 4, params)
    (drafts,) = model_draft(paged=paged).propose([wanted])
    assert_expected(drafts, wanted)


@pytest.mark.parametrize("n_accepted", [0, 1, 2, 3])
def test_the_draft_goes_on_after_a_refusal_and_catches_up_after_a_full_accept(n_accepted: int) -> None:
    source, tokens = model_draft(), [3, 1, 4, 1, 5]
    drafts = proposed(source, tokens, 3)
    assert source.held("r") == 5 + 2  # the last drafted token was not fed back
    own = (drafts[n_accepted] + 1) % 19 if n_accepted < 3 else 7  # the target's token
    tokens += [*drafts[:n_accepted], own]
    passes = []
    model = source.model
    source.model = lambda batch, rows: (passes.append(len(batch.tokens)), model(batch, rows))[1]  # type: ignore[func-returns-value]
    wanted = order(tokens, 3)
    assert_expected(source.propose([wanted])[0], wanted)
    assert passes == [2 if n_accepted == 3 else 1, 1, 1]
    assert source.held("r") == len(tokens) + 2


def test_requests_share_passes_and_each_gets_what_it_would_get_alone() -> None:
    orders = [
        order([3, 1, 4], 3, SamplingParams(1.0), "a"),
        order([1, 5, 9, 2, 6], 1, GREEDY, "b"),
        order([5, 3], 5, SamplingParams(0.7, top_p=0.8), "c"),
    ]
    source = model_draft()
    passes = []
    model = source.model
    source.model = lambda batch, rows: (passes.append(len(rows)), model(batch, rows))[1]  # type: ignore[func-returns-value]
    for drafts, wanted in zip(source.propose(orders), orders, strict=True):
        assert_expected(drafts, wanted)
    assert passes == [3, 2, 2, 1, 1]


@pytest.mark.parametrize("token_budget", [1, 3, 7, 512])
def test_a_long_prompt_is_computed_in_passes_within_the_budget(token_budget: int) -> None:
    source = model_draft(token_budget=token_budget)
    passes = []
    model = source.model
    source.model = lambda batch, rows: (passes.append(len(batch.tokens)), model(batch, rows))[1]  # type: ignore[func-returns-value]
    orders = [order([i % 19 for i in range(20)], 2, request_id="a"), order([4, 2], 2, request_id="b")]
    for drafts, wanted in zip(source.propose(orders), orders, strict=True):
        assert_expected(drafts, wanted)
    assert max(passes) <= max(token_budget, 2)  # a pass has at least one token of each request
    assert sum(passes) == 22 + 2


@pytest.mark.parametrize("n_blocks", [2, 3, 4, 5, 8])
def test_where_the_cache_cannot_hold_all_requests_take_turns_and_get_the_same(n_blocks: int) -> None:
    source = model_draft(n_blocks=n_blocks, block_size=4)
    texts = {name: [numbers.randrange(19) for _ in range(5)] for name in "abcd" for numbers in [random.Random(name)]}
    for _ in range(2):
        orders = [order(tokens, 3, SamplingParams(1.0), name) for name, tokens in texts.items()]
        for drafts, wanted in zip(source.propose(orders), orders, strict=True):
            assert_expected(drafts, wanted)
        for tokens in texts.values():
            tokens.append(11)  # 8 places at most


def test_a_request_too_long_for_the_whole_cache_gets_no_drafts() -> None:
    assert proposed(model_draft(n_blocks=2, block_size=4), [1] * 9, 2) == []
    assert len(proposed(model_draft(n_blocks=2, block_size=4), [1] * 8, 2)) == 1  # the last one needs no place


def test_a_pass_that_fails_leaves_the_draft_as_it_was() -> None:
    source, tokens = model_draft(), [3, 1, 4, 1, 5]
    model, calls = source.model, []

    def broken(batch: Any, rows: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ArithmeticError("the draft broke")
        return model(batch, rows)

    source.model = broken
    with pytest.raises(ArithmeticError):
        proposed(source, tokens, 3)
    wanted = order(tokens, 3)
    assert_expected(source.propose([wanted])[0], wanted)


def test_a_forgotten_request_gives_back_its_blocks() -> None:
    source = model_draft()
    proposed(source, [1, 2, 3], 3)
    source.forget("r")
    source.forget("r")
    assert isinstance(source.cache, PagedCache)
    assert source.cache.free_blocks == 64


# --- Padded vocabularies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [15, 23])
def test_a_draft_with_other_padding_draws_from_its_own_distribution_over_the_ids_that_both_have(n_rows: int) -> None:
    model, n = with_rows(n_rows), min(n_rows, TINY.vocab_size)
    wanted = order([1, 2, 3], 4, SamplingParams(1.0, seed=1))
    draft = ModelDraft.for_llama(model, n_blocks=8, block_size=4, vocab_size=TINY.vocab_size)
    (drafts,) = draft.propose([wanted])
    tokens = list(wanted.tokens)
    with torch.no_grad():
        for found in drafts:
            own = model(Recompute(tokens))[-1, :n].softmax(-1)
            assert found.probs is not None
            assert found.probs.shape == (TINY.vocab_size,)
            torch.testing.assert_close(found.probs[:n], own, rtol=0, atol=1e-9)
            assert not found.probs[n:].any()
            tokens.append(found.token)
    assert len(drafts) == 4


def test_a_request_that_holds_an_id_beyond_the_drafts_rows_is_not_drafted_for() -> None:
    draft = ModelDraft.for_llama(with_rows(15), n_blocks=8, block_size=4, vocab_size=TINY.vocab_size)
    none, some = draft.propose([order([1, 15, 2], 3, request_id="a"), order([1, 14, 2], 3, request_id="b")])
    assert (len(none), len(some)) == (0, 3)
