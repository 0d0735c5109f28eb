"""What the engine asks of a KV cache, and what the model asks of one pass.

A `KVCache` makes a `ForwardBatch`, which the model asks for attention and nothing else. So a model knows nothing of
memory, and a cache knows nothing of models. `contiguous` and `paged` are the two caches. The small helpers that both
need are here too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

Chunk = tuple[Hashable, Sequence[int]]  # a sequence and its new token ids


class ForwardBatch(Protocol):
    """One forward pass over the new tokens of several sequences, packed one after another."""

    tokens: Tensor  # int64 [n_tokens]
    positions: Tensor  # int64 [n_tokens], each token's place in its own sequence
    last_rows: Tensor  # int64 [n_sequences], row of each sequence's last new token

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Stores k and v, returns causal grouped-query attention over each token's own sequence so far.

        q and the result: [n_tokens, n_heads, head_dim]; k, v: [n_tokens, n_kv_heads, head_dim]; RoPE applied already.
        """


class KVCache(Protocol):
    """The keys and values of many sequences. A pass is `extend`, the model, then `commit` (or `abort` if it failed).

    Only one pass may be open, and every other change raises RuntimeError meanwhile. An unknown sequence raises KeyError
    and a full cache MemoryError; after either, everything is as it was.
    """

    @property
    def capacity(self) -> int:
        """The most tokens that one sequence can ever have. The engine refuses longer requests at once."""

    def add(self, seq: Hashable, tokens: Sequence[int] = ()) -> int:
        """Registers a sequence, and returns how many of `tokens` are cached already: always fewer than all of them.

        The caller computes the rest with `extend`. ValueError if `seq` is there already.
        """

    def length(self, seq: Hashable) -> int:
        """Tokens of this sequence in the cache."""

    def can_extend(self, counts: Sequence[tuple[Hashable, int]]) -> bool:
        """Whether `extend` by these numbers of tokens would succeed."""

    def extend(self, chunks: Sequence[Chunk]) -> ForwardBatch:
        """Reserves room for each sequence's new token ids and advances the lengths.

        ValueError for no chunk, an empty chunk or a sequence named twice.
        """

    def commit(self, batch: ForwardBatch) -> None:
        """Ends a pass that succeeded: its full blocks may be shared from now on."""

    def abort(self, batch: ForwardBatch) -> None:
        """Ends a pass that failed: lengths and block tables become what they were before `extend`."""

    def truncate(self, seq: Hashable, length: int) -> None:
        """Keeps the first `length` tokens, and drops the rest (refused drafts). ValueError if there are fewer."""

    def free(self, seq: Hashable) -> None:
        """Forgets a sequence. KeyError the second time."""


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
    """Lets only one pass be open at a time, so nothing that must be undone has changed meanwhile."""

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
