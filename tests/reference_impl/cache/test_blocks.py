"""The block allocator alone: counting, forks, copies on write, and refusals that change nothing. No tensors."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest

from reference_impl.bounds.config import MODELS
from reference_impl.cache.blocks import BlockAllocator


def holding(n_blocks: int, block_size: int, **lengths: int) -> BlockAllocator:
    """An allocator with sequences of these lengths."""
    blocks = BlockAllocator(n_blocks, block_size)
    for seq, n_tokens in lengths.items():
        blocks.add(seq)
        blocks.append([(seq, n_tokens)])
    return blocks


def state(blocks: BlockAllocator, *seqs: str) -> tuple:
    return copy.deepcopy(
        (
            blocks.free_blocks,
            blocks._references,
            {seq: (blocks.block_table(seq), blocks.n_tokens(seq)) for seq in seqs},
        )
    )


@pytest.mark.parametrize(("tokens", "needed"), [(1, 1), (15, 1), (16, 1), (17, 2), (31, 2), (32, 2), (33, 3)])
def test_a_sequence_takes_one_block_for_every_16_tokens_begun(tokens: int, needed: int) -> None:
    assert len(holding(4, 16, a=tokens).block_table("a")) == needed
    one_by_one = holding(4, 16, a=0)
    for _ in range(tokens):
        one_by_one.append([("a", 1)])
    assert len(one_by_one.block_table("a")) == needed
    assert one_by_one.free_blocks == 4 - needed


def test_8192_tokens_of_llama_3_8b_are_512_blocks_of_2_mib_and_1_gib() -> None:
    block_bytes = 16 * MODELS["llama-3-8b"].kv_bytes_per_token()
    assert block_bytes == 2 * 2**20
    n_blocks = len(holding(600, 16, a=8192).block_table("a"))
    assert n_blocks == 512
    assert n_blocks * block_bytes == 2**30


@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
def test_less_than_one_block_a_sequence_is_empty(block_size: int) -> None:
    for n_tokens in range(1, 50):
        reserved = len(holding(50, block_size, a=n_tokens).block_table("a")) * block_size
        assert 0 <= reserved - n_tokens < block_size


def test_a_fork_shares_every_block() -> None:
    blocks = holding(8, 4, parent=10)
    blocks.fork("parent", "child")
    assert blocks.block_table("child") == blocks.block_table("parent")
    assert blocks.n_tokens("child") == 10
    assert blocks.free_blocks == 5


def test_writing_into_a_shared_block_copies_it_and_the_last_user_keeps_it() -> None:
    blocks = holding(8, 4, parent=6)
    blocks.fork("parent", "child")
    shared = blocks.block_table("parent")[1]
    (growth,) = blocks.append([("child", 1)])
    assert growth.copied == (shared, blocks.block_table("child")[1])
    assert blocks.block_table("child")[1] != shared
    assert blocks.block_table("child")[0] == blocks.block_table("parent")[0]
    (growth,) = blocks.append([("parent", 1)])
    assert growth.copied is None
    assert blocks.block_table("parent")[1] == shared


def test_a_fork_at_a_block_boundary_copies_nothing() -> None:
    blocks = holding(8, 4, parent=8)
    blocks.fork("parent", "child")
    growths = blocks.append([("parent", 1), ("child", 1)])
    assert [growth.copied for growth in growths] == [None, None]
    assert blocks.block_table("parent")[:2] == blocks.block_table("child")[:2]
    assert blocks.block_table("parent")[2] != blocks.block_table("child")[2]


def test_both_sharers_writing_at_once_need_one_copy_only() -> None:
    blocks = holding(2, 4, parent=2)
    blocks.fork("parent", "child")
    assert blocks.blocks_needed([("parent", 1), ("child", 1)]) == 1
    blocks.append([("parent", 1), ("child", 1)])
    assert blocks.free_blocks == 0
    assert blocks.block_table("parent") != blocks.block_table("child")


def test_two_of_three_sharers_writing_at_once_need_two_copies() -> None:
    blocks = holding(4, 4, a=2)
    blocks.fork("a", "b")
    blocks.fork("a", "c")
    assert blocks.blocks_needed([("a", 1), ("b", 1)]) == 2
    blocks.append([("a", 1), ("b", 1)])
    assert len({blocks.block_table(seq)[0] for seq in "abc"}) == 3


def test_appending_after_a_cut_inside_a_shared_block_copies_it() -> None:
    blocks = holding(8, 4, parent=8)
    blocks.fork("parent", "child")
    blocks.truncate("child", 6)
    (growth,) = blocks.append([("child", 1)])
    assert growth.copied is not None
    assert blocks.block_table("child")[1] != blocks.block_table("parent")[1]


def test_a_sequence_forked_while_sharing_its_last_block_is_freed_once_each() -> None:
    blocks = holding(4, 4, parent=6)
    blocks.fork("parent", "child")
    blocks.free("parent")
    assert blocks.free_blocks == 2
    blocks.free("child")
    assert blocks.free_blocks == 4
    for seq in ("parent", "child"):
        with pytest.raises(KeyError, match=seq):
            blocks.free(seq)
    blocks.add("a")
    blocks.append([("a", 16)])
    assert sorted(blocks.block_table("a")) == [0, 1, 2, 3]  # a block freed twice would be handed out twice


def test_truncating_gives_back_the_blocks_behind_the_cut() -> None:
    blocks = holding(8, 4, a=13)
    table = list(blocks.block_table("a"))
    blocks.truncate("a", 8)
    assert blocks.block_table("a") == table[:2]
    assert blocks.free_blocks == 6
    blocks.truncate("a", 0)
    assert blocks.block_table("a") == []
    assert blocks.free_blocks == 8


def test_a_lack_of_blocks_says_how_many_and_changes_nothing() -> None:
    blocks = holding(5, 4, a=6, b=4)
    blocks.fork("a", "child")
    before = state(blocks, "a", "b", "child")
    with pytest.raises(MemoryError, match="needs 4 more blocks, 2 of 5 are free"):
        blocks.append([("child", 1), ("b", 9)])  # a copy, and 3 new ones
    assert state(blocks, "a", "b", "child") == before


def test_an_unknown_sequence_changes_nothing() -> None:
    blocks = holding(5, 4, a=6)
    before = state(blocks, "a")
    for call in (
        lambda: blocks.append([("a", 9), ("x", 1)]),
        lambda: blocks.fork("x", "y"),
        lambda: blocks.truncate("x", 0),
        lambda: blocks.free("x"),
        lambda: blocks.block_table("x"),
        lambda: blocks.n_tokens("x"),
    ):
        with pytest.raises(KeyError, match="no sequence 'x'"):
            call()
    assert state(blocks, "a") == before


def test_a_fork_onto_a_name_in_use_changes_nothing() -> None:
    blocks = holding(5, 4, a=6, b=3)
    before = state(blocks, "a", "b")
    with pytest.raises(ValueError, match="'b' is in the cache already"):
        blocks.fork("a", "b")
    assert state(blocks, "a", "b") == before


def test_undoing_gives_back_copies_and_new_blocks() -> None:
    blocks = holding(8, 4, a=6, b=4)
    blocks.fork("a", "child")
    before = state(blocks, "a", "b", "child")
    growths = blocks.append([("child", 7), ("a", 1), ("b", 1)])
    assert state(blocks, "a", "b", "child") != before
    blocks.undo(growths)
    assert state(blocks, "a", "b", "child") == before


@pytest.mark.parametrize(("n_blocks", "block_size"), [(0, 16), (4, 0), (4, -1)])
def test_an_allocator_of_nothing_is_refused(n_blocks: int, block_size: int) -> None:
    with pytest.raises(ValueError, match="need blocks of tokens"):
        BlockAllocator(n_blocks, block_size)


def test_the_bookkeeping_needs_no_torch() -> None:
    code = "import sys, reference_impl.cache.blocks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_undoing_leaves_every_sharer_of_a_cut_back_block_its_own_tokens() -> None:
    """The longest writes into the block: behind its end nobody else has anything, so a failed pass destroys nothing."""
    allocator = BlockAllocator(n_blocks=8, block_size=4)
    allocator.add("long")
    allocator.append([("long", 7)])
    allocator.fork("long", "short")
    allocator.truncate("short", 5)
    shared = allocator.block_table("long")[-1]
    for order in (["long", "short"], ["short", "long"]):
        growths = allocator.append([(seq, 1) for seq in order])
        assert [growth.seq for growth in growths] == order
        assert allocator.block_table("long")[-1] == shared
        assert allocator.block_table("short")[-1] != shared
        allocator.undo(growths)
        assert allocator.block_table("long")[-1] == allocator.block_table("short")[-1] == shared
