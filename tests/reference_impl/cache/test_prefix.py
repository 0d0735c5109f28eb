"""The prefix index alone: what is matched, what is told apart, and what is evicted first."""

from __future__ import annotations

import pytest

from reference_impl.cache.blocks import BlockAllocator
from reference_impl.cache.prefix import ROOT, PrefixIndex


def chain(index: PrefixIndex, first_block: int, *blocks_of_tokens: tuple[int, ...], parent: int = ROOT) -> list[int]:
    """Puts blocks one after another under `parent`; their numbers count up from `first_block`."""
    numbers = list(range(first_block, first_block + len(blocks_of_tokens)))
    for block, tokens in zip(numbers, blocks_of_tokens, strict=True):
        assert index.insert(block, parent, tokens) == block
        parent = block
    return numbers


def test_a_prompt_matches_the_full_blocks_it_begins_with() -> None:
    index = PrefixIndex(2)
    chain(index, 10, (1, 2), (3, 4), (5, 6))
    assert index.match([1, 2, 3, 4, 9, 9], 3) == [10, 11]
    assert index.match([1, 2, 3, 4, 5, 6, 7], 3) == [10, 11, 12]
    assert index.match([1, 2, 3, 4, 5, 6, 7], 2) == [10, 11]
    assert index.match([1, 2, 3], 2) == [10]
    assert index.match([2, 1], 1) == []


def test_equal_tokens_after_another_prefix_are_another_block() -> None:
    index = PrefixIndex(2)
    chain(index, 0, (1, 1), (7, 7))
    chain(index, 5, (2, 2), (7, 7))
    assert index.match([1, 1, 7, 7], 2) == [0, 1]
    assert index.match([2, 2, 7, 7], 2) == [5, 6]
    assert index.match([7, 7], 1) == []


def test_token_ids_65_and_321_are_told_apart() -> None:
    """321 is 65 + 256: hashing only the low byte of each id confuses them."""
    index = PrefixIndex(4)
    index.insert(0, ROOT, (1, 2, 65, 3))
    assert index.match([1, 2, 321, 3], 1) == []
    index.insert(1, ROOT, (1, 2, 321, 3))
    assert index.match([1, 2, 65, 3], 1) == [0]
    assert index.match([1, 2, 321, 3], 1) == [1]


def test_tokens_and_parent_decide_where_every_hash_is_the_same() -> None:
    index = PrefixIndex(2, hash_function=lambda contents: 0)
    chain(index, 0, (65, 65), (1, 1))
    chain(index, 5, (321, 65), (1, 1))
    assert index.match([65, 65, 1, 1], 2) == [0, 1]
    assert index.match([321, 65, 1, 1], 2) == [5, 6]
    assert index.match([65, 321, 1, 1], 2) == []
    index.forget(1)
    assert index.match([65, 65, 1, 1], 2) == [0]
    assert index.match([321, 65, 1, 1], 2) == [5, 6]


def test_a_block_with_known_contents_is_not_taken_up_twice() -> None:
    index = PrefixIndex(2)
    chain(index, 0, (1, 2))
    assert index.insert(9, ROOT, (1, 2)) == 0
    assert 9 not in index


def test_a_block_that_is_not_full_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="got 3 tokens of 4"):
        PrefixIndex(4).insert(0, ROOT, (1, 2, 3))


def test_the_least_recently_used_leaf_goes_first_even_if_its_parent_was_used_longer_ago() -> None:
    index = PrefixIndex(1)
    chain(index, 0, (1,), (2,), (3,))
    chain(index, 5, (9,))
    for block in (0, 5, 1, 2):  # the head first, as a careless caller might
        index.rest(block)
    assert [index.evict() for _ in range(4)] == [5, 2, 1, 0]


def test_using_a_block_again_makes_it_recent() -> None:
    index = PrefixIndex(1)
    chain(index, 0, (1,))
    chain(index, 1, (2,))
    index.rest(0)
    index.rest(1)
    index.wake(0)
    index.rest(0)
    assert index.evict() == 1


def test_forgetting_a_block_forgets_what_lies_below_it() -> None:
    index = PrefixIndex(1)
    chain(index, 0, (1,), (2,), (3,))
    chain(index, 5, (4,), parent=1)
    gone = index.forget(1)
    assert set(gone) == {1, 2, 5}
    assert gone[-1] == 1
    assert index.match([1, 2, 3], 3) == [0]


def test_a_chain_of_ten_thousand_blocks_can_be_forgotten() -> None:
    index = PrefixIndex(1)
    chain(index, 0, *((token,) for token in range(10_000)))
    assert len(index.forget(0)) == 10_000
    assert len(index) == 0


def filled(allocator: BlockAllocator, index: PrefixIndex, seq: str, tokens: list[int]) -> list[int]:
    """A sequence as the cache would make it: matched, grown and made known."""
    known = index.match(tokens, len(tokens) // index.block_size)
    allocator.add(seq, known)
    allocator.append([(seq, len(tokens) - len(known) * index.block_size)])
    table = allocator.block_table(seq)
    for i in range(len(known), len(tokens) // index.block_size):
        parent = table[i - 1] if i else ROOT
        index.insert(table[i], parent, tokens[i * index.block_size : (i + 1) * index.block_size])
    return list(table)


def test_of_a_finished_request_the_tail_is_evicted_before_the_head() -> None:
    index = PrefixIndex(2)
    allocator = BlockAllocator(4, 2, index)
    table = filled(allocator, index, "a", [1, 2, 3, 4, 5, 6, 7, 8])
    allocator.free("a")
    assert allocator.free_blocks == 4
    assert list(index._idle) == table[::-1]  # so that plain least recently used would do as well
    for needed, left in ((1, 3), (2, 2), (3, 1)):
        filled(allocator, index, f"other {needed}", [100 + needed])
        assert len(index.match([1, 2, 3, 4, 5, 6, 7, 8], 4)) == left


def test_the_request_finished_longest_ago_is_evicted_first() -> None:
    index = PrefixIndex(2)
    allocator = BlockAllocator(4, 2, index)
    filled(allocator, index, "old", [1, 2, 3, 4])
    filled(allocator, index, "new", [5, 6, 7, 8])
    allocator.free("old")
    allocator.free("new")
    filled(allocator, index, "more", [9, 9, 9])
    assert index.match([1, 2, 3, 4], 2) == []
    assert len(index.match([5, 6, 7, 8], 2)) == 2


def test_a_prefix_in_use_is_never_evicted() -> None:
    index = PrefixIndex(2)
    allocator = BlockAllocator(4, 2, index)
    head = filled(allocator, index, "a", [1, 2, 3, 4, 5, 6])[:2]
    allocator.free("a")
    assert filled(allocator, index, "b", [1, 2, 3, 4]) == head
    assert allocator.free_blocks == 2
    assert not set(filled(allocator, index, "c", [8, 8, 9, 9])) & set(head)
    allocator.add("d")
    with pytest.raises(MemoryError, match="needs 1 more blocks, 0 of 4 are free"):
        allocator.append([("d", 1)])
    assert index.match([1, 2, 3, 4], 2) == head
