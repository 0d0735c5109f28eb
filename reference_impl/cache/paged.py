"""The paged KV cache: block tables (`blocks`) and prefix sharing (`prefix`) over tensors (PagedAttention).

The allocator decides which block holds what, the storage holds it, and attention follows the table. This file joins the
three, and keeps each sequence's token ids, which identify its full blocks once a pass is done. Kwon et al. 2023,
"Efficient Memory Management for Large Language Model Serving with PagedAttention", section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import torch

from reference_impl.cache.blocks import BlockAllocator, Growth
from reference_impl.cache.interface import Chunk, ForwardBatch, OnePass, Usage, check_counts
from reference_impl.cache.prefix import ROOT, PrefixIndex
from reference_impl.cache.storage import KVStorage, PackedBatch, pack

if TYPE_CHECKING:
    from reference_impl.bounds.config import ModelConfig


class PagedCache(OnePass):
    """A `KVCache` in blocks of `block_size` tokens, with copy-on-write forks and shared prefixes.

    `debug` fills every unused block with NaN. `hash_function` lets tests provoke collisions. A sequence in `in_flight`
    is being copied from or to the host (`offload`), and using it raises RuntimeError.
    """

    def __init__(
        self,
        config: ModelConfig,
        n_blocks: int,
        block_size: int = 16,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        prefix_sharing: bool = True,
        debug: bool = False,
        hash_function: Callable[[Hashable], int] = hash,
    ) -> None:
        super().__init__()
        self.index = PrefixIndex(block_size, hash_function) if prefix_sharing else None
        self.allocator = BlockAllocator(n_blocks, block_size, self.index)
        self.storage = KVStorage(config, n_blocks, block_size, dtype, device)
        self.block_size = block_size
        self.capacity = n_blocks * block_size
        self.debug = debug
        self.in_flight: set[Hashable] = set()
        self._tokens: dict[Hashable, list[int]] = {}
        self._growths: list[Growth] = []  # of the open pass
        if debug:
            self.allocator.on_lost = self.storage.poison
            for block in range(n_blocks):
                self.storage.poison(block)

    @property
    def free_blocks(self) -> int:
        """Blocks that can be taken now: free ones, and those of prefixes that no sequence uses."""
        return self.allocator.free_blocks

    def block_table(self, seq: Hashable) -> list[int]:
        """The block numbers of a sequence, in the order of its tokens."""
        return list(self.allocator.block_table(seq))

    def length(self, seq: Hashable) -> int:
        return self.allocator.n_tokens(seq)

    def add(self, seq: Hashable, tokens: Sequence[int] = ()) -> int:
        return self._add(seq, tokens, (len(tokens) - 1) // self.block_size)  # at least one token must be computed

    def reserve_whole(self, seq: Hashable, tokens: Sequence[int]) -> int:
        """Registers a sequence with room for all of `tokens`; the caller fills in all but the number returned."""
        n_cached = self._add(seq, tokens, len(tokens) // self.block_size)
        try:
            self.allocator.append([(seq, len(tokens) - n_cached)])
        except MemoryError:
            self.free(seq)
            raise
        self._tokens[seq] = list(tokens)
        return n_cached

    def _add(self, seq: Hashable, tokens: Sequence[int], n_blocks: int) -> int:
        """As `add`, sharing at most `n_blocks` blocks."""
        self.require_no_open_pass()
        blocks = self.index.match(tokens, n_blocks) if self.index is not None else []
        self.allocator.add(seq, blocks)
        n_cached = len(blocks) * self.block_size
        self._tokens[seq] = list(tokens[:n_cached])
        return n_cached

    def fork(self, parent: Hashable, child: Hashable) -> None:
        """Registers `child` as a copy of `parent`. They share all blocks until one of them writes into the last."""
        self.require_at_rest(parent)
        self.allocator.fork(parent, child)
        self._tokens[child] = list(self._tokens[parent])

    def can_extend(self, counts: Sequence[tuple[Hashable, int]]) -> bool:
        return self.allocator.has_room(counts)

    def extend(self, chunks: Sequence[Chunk]) -> PackedBatch:
        counts = [(seq, len(new)) for seq, new in chunks]
        check_counts(counts)
        self.require_at_rest(*(seq for seq, _ in chunks))
        growths = self.allocator.append(counts)
        try:
            for growth in growths:
                if growth.copied:
                    self.storage.copy_block(*growth.copied)
            tables = [self.allocator.block_table(seq) for seq, _ in chunks]
            batch = pack(self.storage, [new for _, new in chunks], [growth.n_tokens for growth in growths], tables)
        except BaseException:
            self.allocator.undo(growths)
            raise
        for seq, new in chunks:
            self._tokens[seq].extend(new)
        self._open, self._growths = batch, growths
        return batch

    def commit(self, batch: ForwardBatch) -> None:
        self._close(batch)
        for growth in self._growths:
            self.share_blocks(growth.seq, growth.n_tokens // self.block_size)

    def abort(self, batch: ForwardBatch) -> None:
        self._close(batch)
        self.allocator.undo(self._growths)
        for growth in self._growths:
            del self._tokens[growth.seq][growth.n_tokens :]

    def truncate(self, seq: Hashable, length: int) -> None:
        self.require_at_rest(seq)
        self.allocator.truncate(seq, length)
        del self._tokens[seq][length:]

    def free(self, seq: Hashable) -> None:
        self.require_at_rest(seq)
        self.allocator.free(seq)
        del self._tokens[seq]

    def tokens(self, seq: Hashable) -> list[int]:
        """The token ids of a sequence."""
        return list(self._tokens[seq])

    def share_blocks(self, seq: Hashable, first: int) -> None:
        """Makes the full blocks of a sequence known to others, from place `first` of its table on.

        If an equal block is known already, because two equal prompts were in one pass, the sequence takes that block
        instead. This saves memory, and keeps the rule that a block in use has its parent in use.
        """
        if self.index is None:
            return
        tokens, size = self._tokens[seq], self.block_size
        full = range(first, len(tokens) // size)
        if not full:
            return
        table = self.allocator.block_table(seq)
        for i in full:
            known = self.index.insert(table[i], table[i - 1] if i else ROOT, tokens[i * size : (i + 1) * size])
            if known != table[i]:
                self.allocator.replace(seq, i, known)

    def usage(self) -> Usage:
        """Tokens that sequences hold, and tokens that their blocks have room for."""
        filled: dict[int, int] = {}  # tokens in each block that is in use
        for seq, tokens in self._tokens.items():
            for i, block in enumerate(self.allocator.block_table(seq)):
                filled[block] = max(filled.get(block, 0), min(self.block_size, len(tokens) - i * self.block_size))
        return Usage(sum(filled.values()), len(filled) * self.block_size, self.storage.bytes_per_token)

    def require_at_rest(self, *seqs: Hashable) -> None:
        """RuntimeError while a pass is open or one of these sequences is in flight."""
        self.require_no_open_pass()
        for seq in seqs:
            if seq in self.in_flight:
                raise RuntimeError(f"sequence {seq!r} is being copied between device and host: it cannot be used yet")
