"""Where the keys and values of one pass lie: blocks of memory, and the tables that say which of them are whose.

Kernels take this one object; a cache fills it (`cache.storage`). All its tensors are made once a pass, not once a
layer, since a decode step of one token runs through every layer in a few hundred microseconds. Block tables: Kwon et
al. 2023 (PagedAttention), section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(eq=False)
class PagedKV:
    """The new tokens of several sequences, packed one after another, and the blocks of each sequence."""

    layers: Sequence[tuple[Tensor, Tensor]]  # of each: keys and values [n_blocks, n_kv_heads, block_size, head_dim]
    slots: Tensor  # int64 [n_tokens], where a token goes: block * block_size + place in it; negative: nowhere
    block_tables: Tensor  # int32 [n_sequences, most blocks]; entries behind a sequence's own are not read
    query_lens: Tensor  # int32 [n_sequences], new tokens
    context_lens: Tensor  # int32 [n_sequences], all tokens, the new ones included

    def of_sequence(self, i: int) -> PagedKV:
        """The part that attention needs for sequence `i` alone."""
        own = slice(i, i + 1)
        return PagedKV(self.layers, self.slots, self.block_tables[own], self.query_lens[own], self.context_lens[own])
