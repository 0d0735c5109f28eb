"""The simplest KV cache: for each sequence one contiguous slot of memory, as long as the longest sequence allowed.

The cache keeps the keys and values of past tokens, so a decode step computes one token instead of the whole text. To
reserve a whole slot from the start wastes most of it (Kwon et al. 2023, section 3.1), and `paged` has blocks instead.
Both use `storage`, because a slot is a very long block.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import torch

from reference_impl.cache.interface import Chunk, ForwardBatch, OnePass, Usage, check_counts
from reference_impl.cache.storage import KVStorage, PackedBatch, pack

if TYPE_CHECKING:
    from reference_impl.bounds.config import ModelConfig


class ContiguousCache(OnePass):
    """Reserves a slot of `max_tokens` tokens for each sequence from the start: the cache before paging."""

    def __init__(
        self,
        config: ModelConfig,
        n_slots: int,
        max_tokens: int,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if n_slots < 1 or max_tokens < 1:
            raise ValueError(f"a cache needs slots and tokens, got {n_slots} slots of {max_tokens} tokens")
        self.storage = KVStorage(config, n_slots, max_tokens, dtype, device)
        self.n_slots = n_slots
        self.capacity = max_tokens
        self._free_slots = list(reversed(range(n_slots)))
        self._slots: dict[Hashable, int] = {}
        self._lengths: dict[Hashable, int] = {}
        self._before: dict[Hashable, int] = {}  # lengths that `abort` brings back

    def add(self, seq: Hashable, tokens: Sequence[int] = ()) -> int:
        self.require_no_open_pass()
        if seq in self._slots:
            raise ValueError(f"sequence {seq!r} is in the cache already")
        if not self._free_slots:
            raise MemoryError(f"sequence {seq!r} needs 1 slot, 0 of {self.n_slots} are free")
        self._slots[seq] = self._free_slots.pop()
        self._lengths[seq] = 0
        return 0

    def length(self, seq: Hashable) -> int:
        return self._lengths[seq]

    def can_extend(self, counts: Sequence[tuple[Hashable, int]]) -> bool:
        return all(self._lengths[seq] + n_tokens <= self.capacity for seq, n_tokens in counts)

    def extend(self, chunks: Sequence[Chunk]) -> PackedBatch:
        self.require_no_open_pass()
        check_counts([(seq, len(new)) for seq, new in chunks])
        before = {seq: self._lengths[seq] for seq, _ in chunks}
        for seq, new in chunks:
            if before[seq] + len(new) > self.capacity:
                raise MemoryError(
                    f"sequence {seq!r} needs {before[seq] + len(new)} tokens, its slot holds {self.capacity}"
                )
        tables = [[self._slots[seq]] for seq, _ in chunks]
        batch = pack(self.storage, [new for _, new in chunks], list(before.values()), tables)
        self._lengths.update({seq: before[seq] + len(new) for seq, new in chunks})
        self._before = before
        self._open = batch
        return batch

    def commit(self, batch: ForwardBatch) -> None:
        self._close(batch)

    def abort(self, batch: ForwardBatch) -> None:
        self._close(batch)
        self._lengths.update(self._before)

    def truncate(self, seq: Hashable, length: int) -> None:
        self.require_no_open_pass()
        if not 0 <= length <= self._lengths[seq]:
            raise ValueError(f"sequence {seq!r} has {self._lengths[seq]} tokens, cannot keep {length}")
        self._lengths[seq] = length

    def free(self, seq: Hashable) -> None:
        self.require_no_open_pass()
        self._free_slots.append(self._slots.pop(seq))
        del self._lengths[seq]

    def usage(self) -> Usage:
        """Tokens that sequences hold, and tokens that their slots have room for."""
        return Usage(sum(self._lengths.values()), len(self._slots) * self.capacity, self.storage.bytes_per_token)
