"""The KV cache: what attention keeps of past tokens so that a decode step computes one token only, not the whole text.

This file holds the engine's one seam (`KVCache` gives a `ForwardBatch`, a model asks that for attention and knows
nothing else of memory) and the simplest cache, one contiguous slot a sequence. `paged` puts blocks in place of the
slots; `storage` serves both, for a slot is a block as long as the longest sequence allowed (Kwon et al. 2023, section
3.1, shows what that wastes).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from reference_impl.cache.storage import KVStorage, PackedBatch, pack

if TYPE_CHECKING:
    from reference_impl.bounds.config import ModelConfig

Chunk = tuple[Hashable, Sequence[int]]  # a sequence and its new token ids


class ForwardBatch(Protocol):
    """One forward pass over the new tokens of several sequences, packed one after another."""

    tokens: Tensor  # int64 [n_tokens]
    positions: Tensor  # int64 [n_tokens], each token's place in its own sequence
    last_rows: Tensor  # int64 [n_sequences], row of each sequence's last new token

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Stores k and v, returns causal grouped-query attention over each token's own sequence so far.

        q and the result: [n_tokens, n_heads, head_dim]; k, v: [n_tokens, n_kv_heads, head_dim]; RoPE applied already.
        A batch may offer `attend_rotated` besides (see `PackedBatch`), which applies RoPE on the way.
        """


class KVCache(Protocol):
    """Memory of many sequences. One pass at a time: `extend`, run the model, then `commit` (or `abort` if it failed).

    While a pass is open every other change raises RuntimeError. Unknown sequences raise KeyError, a full cache
    MemoryError; after either, everything is as it was.
    """

    @property
    def capacity(self) -> int:
        """The most tokens that one sequence can ever have; a longer request is to be refused at once."""

    def add(self, seq: Hashable, tokens: Sequence[int] = ()) -> int:
        """Registers a sequence; returns how many of `tokens` are cached already, always fewer than all of them.

        The caller computes the rest with `extend`. ValueError if `seq` is there already.
        """

    def length(self, seq: Hashable) -> int:
        """Tokens of this sequence in the cache."""

    def can_extend(self, counts: Sequence[tuple[Hashable, int]]) -> bool:
        """Would `extend` by these numbers of tokens succeed?"""

    def extend(self, chunks: Sequence[Chunk]) -> ForwardBatch:
        """Reserves room for each sequence's new token ids and advances the lengths.

        ValueError for no chunk, an empty chunk or a sequence named twice.
        """

    def commit(self, batch: ForwardBatch) -> None:
        """The pass is done: full blocks may be shared from now on."""

    def abort(self, batch: ForwardBatch) -> None:
        """The pass failed: lengths and block tables are as before `extend`."""

    def truncate(self, seq: Hashable, length: int) -> None:
        """Drops the tail, so that `length` tokens stay (rejected drafts). ValueError if there are fewer."""

    def free(self, seq: Hashable) -> None:
        """Forgets a sequence; a second time is a KeyError."""


@dataclass(frozen=True)
class Usage:
    """How much of the memory that sequences have reserved holds tokens; shared tokens count once."""

    tokens: int
    reserved_tokens: int
    bytes_per_token: int

    @property
    def waste_bytes(self) -> int:
        """Bytes reserved and empty."""
        return (self.reserved_tokens - self.tokens) * self.bytes_per_token


def check_counts(counts: Sequence[tuple[Hashable, int]]) -> None:
    """ValueError unless there is at least one sequence, each named once, each with at least one new token."""
    if not counts:
        raise ValueError("a pass needs at least one sequence with new tokens")
    seen: set[Hashable] = set()
    for seq, n_tokens in counts:
        if n_tokens < 1:
            raise ValueError(f"sequence {seq!r} has no new token in this pass")
        if seq in seen:
            raise ValueError(f"sequence {seq!r} is named twice in one pass")
        seen.add(seq)


class OnePass:
    """Lets one pass be open at a time, so that taking it back never meets changes that came after it."""

    def __init__(self) -> None:
        self._open: ForwardBatch | None = None

    def require_no_open_pass(self) -> None:
        """RuntimeError while a pass is open."""
        if self._open is not None:
            raise RuntimeError("a forward pass is open: commit or abort it before the cache is changed")

    def _close(self, batch: ForwardBatch) -> None:
        if self._open is None or batch is not self._open:
            raise ValueError("this batch is not the open pass: it was committed or aborted already")
        self._open = None


class ContiguousCache(OnePass):
    """One slot of `max_tokens` tokens a sequence, reserved whole from the start: the cache before paging."""

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
        """Tokens held against tokens reserved."""
        return Usage(sum(self._lengths.values()), len(self._slots) * self.capacity, self.storage.bytes_per_token)
