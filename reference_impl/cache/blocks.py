"""Block tables: which blocks of memory hold which tokens of which sequence. Bookkeeping alone, without tensors.

Memory is cut into blocks of a few tokens. A sequence has a table of block numbers, in order, and takes another block
only when its last one is full, so it wastes less than one block. Several tables may contain the same block. Such a
block is counted, and copied when one of its sequences writes into it (Kwon et al. 2023, section 4.3). With a prefix
index, a block that no sequence uses any more keeps its contents until its room is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from reference_impl.cache.prefix import PrefixIndex


@dataclass(slots=True)
class BlockTable:
    """The blocks of one sequence; the last one may be partly filled."""

    blocks: list[int] = field(default_factory=list)
    n_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Growth:
    """What `append` changed for one sequence, so that it can be taken back."""

    seq: Hashable
    n_tokens: int  # before
    n_blocks: int  # before
    copied: tuple[int, int] | None = None  # (source, copy): copy these contents, as the last block was shared


class BlockAllocator:
    """Every block is in exactly one place: free, in at least one table, or idle in the prefix index.

    `on_lost(block)` is called when the contents of a block are given up, before anything new is put there. An unknown
    sequence raises KeyError and a lack of blocks MemoryError; both leave the state as it was.
    """

    def __init__(
        self,
        n_blocks: int,
        block_size: int,
        index: PrefixIndex | None = None,
        on_lost: Callable[[int], None] = lambda block: None,
    ) -> None:
        if n_blocks < 1 or block_size < 1:
            raise ValueError(f"need blocks of tokens, got {n_blocks} blocks of {block_size} tokens")
        self.n_blocks = n_blocks
        self.block_size = block_size
        self.index = index
        self.on_lost = on_lost
        self._free = list(reversed(range(n_blocks)))  # taken from the end
        self._references = [0] * n_blocks  # how often a block occurs in all tables
        self._tables: dict[Hashable, BlockTable] = {}

    @property
    def free_blocks(self) -> int:
        """Blocks that the next `append` can take: the free ones and the idle ones of the prefix index."""
        return len(self._free) + (self.index.n_idle if self.index is not None else 0)

    def __contains__(self, seq: Hashable) -> bool:
        return seq in self._tables

    def n_tokens(self, seq: Hashable) -> int:
        return self._table(seq).n_tokens

    def block_table(self, seq: Hashable) -> list[int]:
        """The block numbers of a sequence, in the order of its tokens. The caller must not change the list."""
        return self._table(seq).blocks

    def add(self, seq: Hashable, blocks: Sequence[int] = ()) -> None:
        """Registers a sequence that begins with these full blocks, which come from the prefix index."""
        if seq in self._tables:
            raise ValueError(f"sequence {seq!r} is in the cache already")
        for block in blocks:
            self._share(block)
        self._tables[seq] = BlockTable(list(blocks), len(blocks) * self.block_size)

    def fork(self, parent: Hashable, child: Hashable) -> None:
        """Registers `child` with all blocks of `parent`; nothing is copied until one of them writes."""
        table = self._table(parent)
        self.add(child, table.blocks)
        self._tables[child].n_tokens = table.n_tokens

    def blocks_needed(self, counts: Sequence[tuple[Hashable, int]]) -> int:
        """How many blocks `append` would take for these numbers of new tokens, copies included."""
        new_blocks = 0
        writers: Counter[int] = Counter()  # how many of these sequences write into a partly filled block
        for seq, n_new in counts:
            table = self._table(seq)
            new_blocks += -(-(table.n_tokens + n_new) // self.block_size) - len(table.blocks)
            if n_new and table.n_tokens % self.block_size:
                writers[table.blocks[-1]] += 1
        # If all users of a block write, the last one keeps the block itself.
        return new_blocks + sum(min(n, self._references[block] - 1) for block, n in writers.items())

    def has_room(self, counts: Sequence[tuple[Hashable, int]]) -> bool:
        """Whether `append` would succeed."""
        return self._can_take(self.blocks_needed(counts))

    def append(self, counts: Sequence[tuple[Hashable, int]]) -> list[Growth]:
        """Makes room for the new tokens of each (sequence, count): for all of them, or (MemoryError) for none.

        If several sequences share a partly filled block, the longest may write into it without a copy: the others never
        read the places behind their own ends, even if the pass fails.
        """
        needed = self.blocks_needed(counts)
        if not self._can_take(needed):
            raise MemoryError(f"needs {needed} more blocks, {self.free_blocks} of {self.n_blocks} are free")
        shortest_first = sorted(range(len(counts)), key=lambda i: self._table(counts[i][0]).n_tokens)
        growths = {i: self._grow(*counts[i]) for i in shortest_first}
        return [growths[i] for i in range(len(counts))]

    def undo(self, growths: Sequence[Growth]) -> None:
        """Takes `append` back. Nothing else may have happened in between."""
        for growth in sorted(growths, key=lambda growth: -growth.n_tokens):  # the shortest grew last
            table = self._tables[growth.seq]
            self._drop_tail(table, growth.n_blocks)
            table.n_tokens = growth.n_tokens
            if growth.copied:
                source, copy = growth.copied
                self._share(source)
                table.blocks[-1] = source
                self._release(copy)

    def replace(self, seq: Hashable, place: int, block: int) -> None:
        """Puts another block with the same contents into a table."""
        blocks = self._table(seq).blocks
        self._share(block)
        self._release(blocks[place])
        blocks[place] = block

    def truncate(self, seq: Hashable, n_tokens: int) -> None:
        """Keeps the first `n_tokens` tokens, and gives back the blocks that hold none of them."""
        table = self._table(seq)
        if not 0 <= n_tokens <= table.n_tokens:
            raise ValueError(f"sequence {seq!r} has {table.n_tokens} tokens, cannot keep {n_tokens}")
        self._drop_tail(table, -(-n_tokens // self.block_size))
        table.n_tokens = n_tokens

    def free(self, seq: Hashable) -> None:
        """Forgets a sequence, its last block first, so that a shared prefix is evicted from its end."""
        self._drop_tail(self._table(seq), 0)
        del self._tables[seq]

    def _table(self, seq: Hashable) -> BlockTable:
        if seq not in self._tables:
            raise KeyError(f"no sequence {seq!r} in the cache")
        return self._tables[seq]

    def _grow(self, seq: Hashable, n_new: int) -> Growth:
        table = self._tables[seq]
        before = Growth(seq, table.n_tokens, len(table.blocks))
        if n_new and table.n_tokens % self.block_size:
            last = table.blocks[-1]
            if self._references[last] > 1:
                copy = self._take()
                table.blocks[-1] = copy
                self._release(last)
                before = Growth(seq, before.n_tokens, before.n_blocks, copied=(last, copy))
            elif (
                self.index is not None and last in self.index
            ):  # cut back into a full block: its old contents are overwritten
                self._lose(self.index.forget(last), keep=last)
        table.n_tokens += n_new
        while len(table.blocks) * self.block_size < table.n_tokens:
            table.blocks.append(self._take())
        return before

    def _can_take(self, n_blocks: int) -> bool:
        return n_blocks <= len(self._free) or n_blocks <= self.free_blocks  # asks the index only if it matters

    def _take(self) -> int:
        if self._free:
            block = self._free.pop()
        else:
            assert self.index is not None  # as append has counted
            block = self.index.evict()
            self.on_lost(block)
        self._references[block] = 1
        return block

    def _share(self, block: int) -> None:
        if self._references[block] == 0:
            assert self.index is not None  # only the index hands out blocks that no table has
            self.index.wake(block)
        self._references[block] += 1

    def _release(self, block: int) -> None:
        self._references[block] -= 1
        if self._references[block] == 0:
            if self.index is not None and block in self.index:
                self.index.rest(block)
            else:
                self._lose([block])

    def _lose(self, blocks: Sequence[int], keep: int | None = None) -> None:
        for block in blocks:
            if block != keep:
                self.on_lost(block)
                self._free.append(block)

    def _drop_tail(self, table: BlockTable, n_blocks: int) -> None:
        while len(table.blocks) > n_blocks:
            self._release(table.blocks.pop())
