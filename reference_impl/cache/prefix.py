"""Prefix sharing: finds the full blocks that already hold the beginning of a prompt, so that it is not computed again.

The keys and values of a block depend on its tokens and on all tokens before it. So a block is known by its parent block
and its own tokens, and known blocks form a tree; a prompt is matched by walking down from the root. A hash only says
where to look: parent and tokens are compared, so a collision costs a comparison and never gives a wrong block. Blocks
that no sequence uses stay here until room is needed; the least recently used leaf goes first. (After vLLM's automatic
prefix caching; SGLang's RadixAttention, Zheng et al. 2024, section 3, keeps the same tree by tokens.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

ROOT = -1  # the parent of a sequence's first block


@dataclass(slots=True)
class Node:
    """One full block of the tree."""

    parent: int
    tokens: tuple[int, ...]
    children: set[int] = field(default_factory=set)


class PrefixIndex:
    """The tree of full blocks by contents. The allocator tells it by `wake` and `rest` whether a block is in use.

    A block that is in use keeps its parent in use, since every sequence holds its whole prefix. So an idle block has
    only idle blocks below it, and all of them can be evicted, leaves first.
    """

    def __init__(self, block_size: int, hash_function: Callable[[Hashable], int] = hash) -> None:
        self.block_size = block_size
        self._hash = hash_function
        self._nodes: dict[int, Node] = {}
        self._buckets: dict[int, list[int]] = {}  # hash of (parent, tokens) -> blocks that have it
        self._idle: dict[int, None] = {}  # blocks without a user; an ordered set, the least recently used first

    @property
    def n_idle(self) -> int:
        """Blocks that could be evicted, one after another."""
        return len(self._idle)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, block: int) -> bool:
        return block in self._nodes

    def find(self, parent: int, tokens: Sequence[int]) -> int | None:
        """The block that holds these tokens after this parent."""
        tokens = tuple(tokens)
        for block in self._buckets.get(self._hash((parent, tokens)), ()):
            node = self._nodes[block]
            if node.parent == parent and node.tokens == tokens:
                return block
        return None

    def match(self, tokens: Sequence[int], n_blocks: int) -> list[int]:
        """The longest known chain of full blocks that `tokens` begins with, `n_blocks` at most."""
        chain: list[int] = []
        parent = ROOT
        for i in range(n_blocks):
            block = self.find(parent, tokens[i * self.block_size : (i + 1) * self.block_size])
            if block is None:
                break
            chain.append(block)
            parent = block
        return chain

    def insert(self, block: int, parent: int, tokens: Sequence[int]) -> int:
        """Makes a block in use known by its contents, and returns the block to use from now on.

        That is another block if an equal one is known already.
        """
        tokens = tuple(tokens)
        if len(tokens) != self.block_size:
            raise ValueError(f"only full blocks can be shared: got {len(tokens)} tokens of {self.block_size}")
        known = self.find(parent, tokens)
        if known is not None:
            return known
        self._nodes[block] = Node(parent, tokens)
        self._buckets.setdefault(self._hash((parent, tokens)), []).append(block)
        if parent != ROOT:
            self._nodes[parent].children.add(block)
        return block

    def rest(self, block: int) -> None:
        """No sequence uses the block any more. It becomes the most recently used of the idle ones."""
        self._idle[block] = None

    def wake(self, block: int) -> None:
        """A sequence uses the block again."""
        del self._idle[block]

    def evict(self) -> int:
        """Forgets the least recently used idle leaf and returns it."""
        leaf = next(block for block in self._idle if not self._nodes[block].children)
        self.forget(leaf)
        return leaf

    def forget(self, block: int) -> list[int]:
        """Forgets a block and everything below it (which must be idle); returns them, leaves first."""
        gone = [block]
        for known in gone:  # the list grows meanwhile: parents before children
            gone += self._nodes[known].children
        gone.reverse()
        for known in gone:
            node = self._nodes.pop(known)
            self._idle.pop(known, None)
            key = self._hash((node.parent, node.tokens))
            self._buckets[key].remove(known)
            if not self._buckets[key]:
                del self._buckets[key]
            if node.parent != ROOT:
                self._nodes[node.parent].children.remove(known)
        return gone
