"""Paging, copies on write and prefix sharing leave the logits as they are; what `test_cache` does not cover."""

from __future__ import annotations

import pytest
import torch
from cache_machine import CacheMachine
from cache_oracle import TINY, assert_same, recomputed, step, text, tiny_llama
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from reference_impl.bounds.config import MODELS
from reference_impl.cache.paged import PagedCache


def paged(n_blocks: int, block_size: int = 4, **options: object) -> PagedCache:
    return PagedCache(TINY, n_blocks, block_size, dtype=torch.float64, debug=True, **options)


def test_everything_holds_after_each_of_thousands_of_random_operations() -> None:
    CacheMachine.operations = 0
    run_state_machine_as_test(
        CacheMachine, settings=settings(max_examples=50, stateful_step_count=50, deadline=None, derandomize=True)
    )
    assert CacheMachine.operations >= 2000


@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
def test_parent_and_forked_child_each_equal_their_own_recomputation(block_size: int) -> None:
    tokens, one, other = text(13), text(9, 1), text(9, 2)
    for n in range(1, 13):
        kv = paged(60 // block_size + 2, block_size)
        kv.add("parent")
        step(kv, ("parent", tokens[:n]))
        kv.fork("parent", "child")
        (first,) = step(kv, ("child", one[:1]))
        rest_of_parent, rest_of_child = step(kv, ("parent", other), ("child", one[1:]))
        assert_same(torch.cat([first, rest_of_child]), recomputed(tokens[:n] + one)[n:])
        assert_same(rest_of_parent, recomputed(tokens[:n] + other)[n:])


def test_parent_and_child_that_write_in_the_same_pass_do_not_meet() -> None:
    tokens = text(6)
    kv = paged(3)
    kv.add("parent")
    step(kv, ("parent", tokens))
    kv.fork("parent", "child")
    for logits, token in zip(step(kv, ("parent", [1]), ("child", [2])), (1, 2), strict=True):
        assert_same(logits[0], recomputed([*tokens, token])[-1])


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize("cut", range(1, 12))
def test_a_child_cut_back_into_a_shared_block_leaves_the_parent_alone(cut: int, sharing: bool) -> None:
    tokens, other = text(12), text(6, 1)
    kv = paged(12, prefix_sharing=sharing)
    kv.add("parent")
    step(kv, ("parent", tokens))
    kv.fork("parent", "child")
    kv.truncate("child", cut)
    (child,) = step(kv, ("child", other))
    (parent,) = step(kv, ("parent", [7]))
    assert_same(child, recomputed(tokens[:cut] + other)[cut:])
    assert_same(parent[0], recomputed([*tokens, 7])[-1])


def test_a_sequence_cut_back_into_a_block_known_as_a_prefix_does_not_spoil_it_for_others() -> None:
    tokens, other = text(12), text(6, 1)
    kv = paged(12)
    kv.add("a")
    step(kv, ("a", tokens))
    kv.truncate("a", 6)
    step(kv, ("a", other))
    n_cached = kv.add("b", tokens)
    (logits,) = step(kv, ("b", tokens[n_cached:]))
    assert n_cached == 4
    assert_same(logits, recomputed(tokens)[n_cached:])


def test_physical_blocks_may_lie_anywhere() -> None:
    """The blocks are shuffled between passes, tables along with them: no logit may change."""
    texts = {"a": text(23, 1), "b": text(14, 2)}
    kv = paged(16, 3, prefix_sharing=False)
    for seq, tokens in texts.items():
        kv.add(seq)
        step(kv, (seq, tokens[:5]))
    generator = torch.Generator().manual_seed(0)
    for n in range(5, 14):
        place = torch.randperm(16, generator=generator)  # block i moves to place[i]
        for tensor in (kv.storage.k, kv.storage.v):
            tensor[:, place] = tensor.clone()
        for table in kv.allocator._tables.values():
            table.blocks[:] = place[table.blocks].tolist()
        kv.allocator._free[:] = place[kv.allocator._free].tolist()
        kv.allocator._references[:] = torch.tensor(kv.allocator._references)[place.argsort()].tolist()
        for logits, tokens in zip(
            step(kv, *((s, t[n : n + 1]) for s, t in texts.items())), texts.values(), strict=True
        ):
            assert_same(logits[0], recomputed(tokens[: n + 1])[-1])


def test_freed_blocks_are_poison_and_are_never_read() -> None:
    """Blocks that held other texts are given to a new one at every length; a single NaN read would fill its logits."""
    kv = paged(8, prefix_sharing=False)
    for n in range(1, 32):
        kv.add("before")
        step(kv, ("before", text(32, n)))
        kv.free("before")
        assert kv.storage.k.isnan().all()
        kv.add("after")
        prefill, decode = step(kv, ("after", text(n)))[0], step(kv, ("after", [3]))[0]
        assert_same(torch.cat([prefill, decode]), recomputed([*text(n), 3]))
        kv.free("after")


def test_the_poison_works() -> None:
    """The check above would be worth nothing if a read of a freed block did not show."""
    kv = paged(8)
    kv.add("a")
    step(kv, ("a", text(9)))
    kv.storage.poison(kv.block_table("a")[1])
    assert step(kv, ("a", [3]))[0].isnan().all()


@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
def test_prefix_sharing_on_and_off_give_the_same_logits(block_size: int) -> None:
    system = text(33)
    prompts = [system + text(n, seed=n) for n in (1, 5, 12)] + [system[:20], system]
    for sharing in (True, False):
        kv = paged(300 // block_size, block_size, prefix_sharing=sharing)
        hits = 0
        for i, prompt in enumerate([*prompts, *prompts]):
            n_cached = kv.add(i, prompt)
            hits += n_cached
            (logits,) = step(kv, (i, prompt[n_cached:]))
            assert_same(logits, recomputed(prompt)[n_cached:])
            if i % 2:
                kv.free(i)
        assert (hits > 0) == sharing


@pytest.mark.parametrize("freed", [True, False])
def test_the_same_512_token_prompt_twice_leaves_a_token_to_compute(freed: bool) -> None:
    """512 tokens are exactly two blocks of 256: reusing both would leave no row to take logits from."""
    prompt = text(512)
    kv = paged(4, 256)
    assert kv.add("first", prompt) == 0
    (first,) = step(kv, ("first", prompt))
    if freed:
        kv.free("first")
    n_cached = kv.add("second", prompt)
    assert n_cached == 256
    (second,) = step(kv, ("second", prompt[n_cached:]))
    assert_same(second[-1], first[-1])
    assert_same(second[-1], recomputed(prompt)[-1])


@pytest.mark.parametrize(("n_tokens", "shared"), [(0, 0), (1, 0), (4, 0), (5, 4), (8, 4), (9, 8), (11, 8)])
def test_at_least_one_token_is_always_left_to_compute(n_tokens: int, shared: int) -> None:
    tokens = text(12)
    kv = paged(8)
    kv.add("a", tokens)
    step(kv, ("a", tokens))
    assert kv.add("b", tokens[:n_tokens]) == shared
    assert kv.length("b") == shared


@pytest.mark.parametrize("hash_function", [hash, lambda contents: 0])
def test_prompts_that_differ_in_token_65_or_321_share_nothing_even_when_their_hashes_collide(hash_function) -> None:
    one, other = [65, *text(11)], [321, *text(11)]
    kv = paged(12, hash_function=hash_function)
    for seq, prompt in (("one", one), ("other", other)):
        assert kv.add(seq, prompt) == 0
        (logits,) = step(kv, (seq, prompt))
        assert_same(logits, recomputed(prompt))
    assert kv.add("again", other) == 8
    (logits,) = step(kv, ("again", other[8:]))
    assert_same(logits, recomputed(other)[8:])


def test_equal_prompts_computed_in_one_pass_end_up_in_the_same_blocks() -> None:
    prompt = text(10)
    kv = paged(6)
    kv.add("a", prompt)
    kv.add("b", prompt)
    step(kv, ("a", prompt), ("b", prompt))
    assert kv.block_table("a")[:2] == kv.block_table("b")[:2]
    assert kv.free_blocks == 2
    for logits, token in zip(step(kv, ("a", [1]), ("b", [2])), (1, 2), strict=True):
        assert_same(logits[0], recomputed([*prompt, token])[-1])


def test_blocks_can_be_shared_only_once_their_pass_is_committed() -> None:
    prompt = text(10)
    kv = paged(6)
    kv.add("a", prompt)
    kv.abort(kv.extend([("a", prompt)]))
    assert kv.add("b", prompt) == 0
    kv.commit(kv.extend([("a", prompt)]))
    assert kv.add("c", prompt) == 8


def test_generated_tokens_are_shared_with_the_next_turn_of_a_chat() -> None:
    first_turn, answer = text(7), text(6, 1)
    kv = paged(8)
    kv.add("turn 1", first_turn)
    step(kv, ("turn 1", first_turn))
    for token in answer:
        step(kv, ("turn 1", [token]))
    kv.free("turn 1")
    assert kv.add("turn 2", [*first_turn, *answer, 5, 6]) == 12


def test_room_for_new_tokens_is_made_from_prefixes_that_nobody_uses() -> None:
    kv = paged(4)
    kv.add("old", text(16))
    step(kv, ("old", text(16)))
    kv.free("old")
    assert kv.free_blocks == 4
    tokens = text(14, 1)
    kv.add("new", tokens)
    (logits,) = step(kv, ("new", tokens))
    assert_same(logits, recomputed(tokens))
    assert kv.add("old", text(16)) == 0  # the head was the last to go, and it had to


def test_a_lack_of_blocks_names_the_blocks() -> None:
    kv = paged(4)
    kv.add("a")
    step(kv, ("a", text(9)))
    with pytest.raises(MemoryError, match="needs 2 more blocks, 1 of 4 are free"):
        kv.extend([("a", text(8))])
    assert kv.free_blocks == 1
    assert kv.capacity == 16


def test_8192_tokens_of_llama_3_8b_take_512_blocks_of_2_mib() -> None:
    kv = PagedCache(MODELS["llama-3-8b"], 520, 16, dtype=torch.bfloat16, device="meta")
    assert kv.block_size * kv.storage.bytes_per_token == 2 * 2**20
    kv.add("a")
    kv.commit(kv.extend([("a", [0] * 8192)]))
    assert len(kv.block_table("a")) == 512
    assert 512 * kv.block_size * kv.storage.bytes_per_token == 2**30
    assert kv.usage().waste_bytes == 0


def test_shared_tokens_count_once_and_waste_is_what_last_blocks_leave_empty() -> None:
    kv = paged(12)
    kv.add("a")
    step(kv, ("a", text(10)))
    kv.fork("a", "b")
    assert (kv.usage().tokens, kv.usage().reserved_tokens) == (10, 12)
    step(kv, ("b", [1]))  # b now has its own third block with 3 tokens, a's has 2
    assert (kv.usage().tokens, kv.usage().reserved_tokens) == (13, 16)
    assert kv.usage().waste_bytes == 3 * 2 * 2 * 2 * 4 * 8  # k and v, layers, KV heads, head_dim, bytes of a float64


def test_speculative_rollback_keeps_the_accepted_tokens() -> None:
    tokens = text(24)
    kv = paged(10)
    kv.add("a")
    step(kv, ("a", tokens[:6]))
    for n in range(6, 20, 2):  # 2 of 4 drafted tokens are accepted
        (logits,) = step(kv, ("a", [*tokens[n : n + 2], 399, 398]))
        assert_same(logits[:2], recomputed(tokens)[n : n + 2])
        kv.truncate("a", n + 2)


def test_an_aborted_pass_restores_block_tables_and_sharing() -> None:
    kv = paged(8)
    kv.add("parent")
    step(kv, ("parent", text(6)))
    kv.fork("parent", "child")
    tables = kv.block_table("parent"), kv.block_table("child")
    batch = kv.extend([("child", [1]), ("parent", [2])])
    tiny_llama()(batch)
    kv.abort(batch)
    assert (kv.block_table("parent"), kv.block_table("child")) == tables
    assert kv.free_blocks == 6
    assert kv.tokens("child") == text(6)
