"""Random operations on a paged cache, with everything that must hold checked after each of them.

In place of a model, the key written for a token is a number that depends on it and on all tokens before it, as real
keys do. So a wrong block, a stale one or one that was freed too early shows in the first key that is read from it.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reference_impl import kernels
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.paged import PagedCache

ONE_NUMBER_A_TOKEN = ModelConfig("one", 1, 1, 1, 1, 1, 1, 3)
TOKENS = st.lists(st.integers(0, 2), max_size=9)  # few different ones, so that prefixes are often equal


def keys_of(tokens: Sequence[int]) -> list[float]:
    """One number a token that stands for the whole text up to it; whole numbers below 2^40 are exact in float64."""
    keys, key = [], 1
    for token in tokens:
        key = (key * 1_000_003 + token + 1) % 2**40
        keys.append(float(key))
    return keys


class CacheMachine(RuleBasedStateMachine):
    operations: ClassVar[int] = 0

    @initialize(n_blocks=st.integers(2, 12), block_size=st.integers(1, 3), sharing=st.booleans(), collide=st.booleans())
    def start(self, n_blocks: int, block_size: int, sharing: bool, collide: bool) -> None:
        self.cache = PagedCache(
            ONE_NUMBER_A_TOKEN,
            n_blocks,
            block_size,
            dtype=torch.float64,
            prefix_sharing=sharing,
            debug=True,
            hash_function=(lambda contents: 0) if collide else hash,
        )
        self.texts: dict[int, list[int]] = {}  # of each sequence that can be used
        self.names = 0
        self.begin()

    def begin(self) -> None:
        """More of the same, in a machine built on this one."""

    def new_name(self) -> int:
        self.names += 1
        return self.names

    def pick(self, i: int) -> int:
        return sorted(self.texts)[i % len(self.texts)]

    def expect_unchanged(self, error: type[Exception], call: Callable[[], object]) -> None:
        before = self.everything()
        try:
            call()
        except error:
            assert self.everything() == before
        else:
            raise AssertionError(f"no {error.__name__}")

    def everything(self) -> object:
        allocator, index = self.cache.allocator, self.cache.index
        return copy.deepcopy(
            (
                allocator._free,
                allocator._references,
                allocator._tables,
                (index._nodes, list(index._idle), index._buckets) if index is not None else None,
                self.cache._tokens,
                self.cache.in_flight,
                self.cache.storage.k.nan_to_num(-1.0).tolist(),
            )
        )

    @rule(tokens=TOKENS)
    def add(self, tokens: list[int]) -> None:
        seq = self.new_name()
        n_cached = self.cache.add(seq, tokens)
        assert n_cached == 0 or n_cached < len(tokens)
        self.texts[seq] = tokens[:n_cached]

    @precondition(lambda self: self.texts)
    @rule(picks=st.lists(st.tuples(st.integers(0, 99), TOKENS.filter(len)), min_size=1, max_size=3), good=st.booleans())
    def forward(self, picks: list[tuple[int, list[int]]], good: bool) -> None:
        chunks = list({self.pick(i): tokens for i, tokens in picks}.items())
        counts = [(seq, len(tokens)) for seq, tokens in chunks]
        if not self.cache.can_extend(counts):
            self.expect_unchanged(MemoryError, lambda: self.cache.extend(chunks))
            return
        before = {seq: list(table.blocks) for seq, table in self.cache.allocator._tables.items()}
        free = self.cache.free_blocks
        batch = self.cache.extend(chunks)
        keys = [key for seq, tokens in chunks for key in keys_of(self.texts[seq] + tokens)[-len(tokens) :]]
        k = torch.tensor(keys, dtype=torch.float64).view(-1, 1, 1)
        kernels.store_kv(k, k, batch, 0)
        if good:
            self.cache.commit(batch)
            for seq, tokens in chunks:
                self.texts[seq] = self.texts[seq] + tokens
        else:
            self.cache.abort(batch)
            assert {seq: table.blocks for seq, table in self.cache.allocator._tables.items()} == before
            assert self.cache.free_blocks == free

    @precondition(lambda self: self.texts)
    @rule(i=st.integers(0, 99))
    def fork(self, i: int) -> None:
        child = self.new_name()
        self.cache.fork(self.pick(i), child)
        self.texts[child] = list(self.texts[self.pick(i)])

    @precondition(lambda self: self.texts)
    @rule(i=st.integers(0, 99), cut=st.integers(0, 9))
    def truncate(self, i: int, cut: int) -> None:
        seq = self.pick(i)
        kept = max(0, len(self.texts[seq]) - cut)
        self.cache.truncate(seq, kept)
        del self.texts[seq][kept:]

    @precondition(lambda self: self.texts)
    @rule(i=st.integers(0, 99))
    def free(self, i: int) -> None:
        seq = self.pick(i)
        self.cache.free(seq)
        del self.texts[seq]
        self.expect_unchanged(KeyError, lambda: self.cache.free(seq))

    @precondition(lambda self: self.texts)
    @rule(i=st.integers(0, 99))
    def name_an_unknown_sequence(self, i: int) -> None:
        known = self.pick(i)
        self.expect_unchanged(KeyError, lambda: self.cache.extend([(known, [1]), ("x", [1])]))
        self.expect_unchanged(KeyError, lambda: self.cache.fork("x", "y"))
        self.expect_unchanged(KeyError, lambda: self.cache.truncate("x", 0))

    @invariant()
    def count(self) -> None:
        type(self).operations += 1

    @invariant()
    def references_are_occurrences_over_all_tables(self) -> None:
        found = Counter(block for table in self.cache.allocator._tables.values() for block in table.blocks)
        n_blocks = self.cache.allocator.n_blocks
        assert self.cache.allocator._references == [found[block] for block in range(n_blocks)]

    @invariant()
    def every_block_has_one_role(self) -> None:
        allocator, index = self.cache.allocator, self.cache.index
        used = {block for table in allocator._tables.values() for block in table.blocks}
        idle = list(index._idle) if index is not None else []
        assert sorted([*allocator._free, *used, *idle]) == list(range(allocator.n_blocks))
        assert self.cache.free_blocks == len(allocator._free) + len(idle)
        if index is not None:
            assert set(idle) <= set(index._nodes) <= used | set(idle)

    @invariant()
    def tables_are_just_long_enough_and_texts_known(self) -> None:
        for seq, text in self.texts.items():
            assert self.cache.length(seq) == len(text)
            assert self.cache.tokens(seq) == text
            assert len(self.cache.block_table(seq)) == -(-len(text) // self.cache.block_size)

    @invariant()
    def keys_are_found_where_the_tables_say(self) -> None:
        for seq, text in self.texts.items():
            assert self.read(self.cache.block_table(seq))[: len(text)] == keys_of(text)

    @invariant()
    def known_blocks_hold_what_they_are_known_for(self) -> None:
        index = self.cache.index
        for block in index._nodes if index is not None else ():
            path = [block]
            while index._nodes[path[0]].parent != -1:
                path.insert(0, index._nodes[path[0]].parent)
            text = [token for known in path for token in index._nodes[known].tokens]
            assert self.read(path) == keys_of(text)

    @invariant()
    def free_blocks_are_poisoned(self) -> None:
        for block in self.cache.allocator._free:
            assert self.cache.storage.k[:, block].isnan().all()

    @invariant()
    def waste_is_below_one_block_a_sequence(self) -> None:
        usage = self.cache.usage()
        waste = usage.reserved_tokens - usage.tokens
        assert 0 <= waste <= len(self.cache._tokens) * (self.cache.block_size - 1)

    def read(self, blocks: list[int]) -> list[float]:
        return self.cache.storage.k[0, blocks].flatten().tolist()

    def teardown(self) -> None:
        if not hasattr(self, "cache"):
            return
        for seq in list(self.texts):
            self.cache.free(seq)
        assert self.cache.free_blocks == self.cache.allocator.n_blocks
