"""Where the keys and values of one pass lie: blocks of memory, and tables that say which sequence has which blocks.

A cache makes this one object (`cache.storage`) and kernels take it. Its tensors are made once a pass rather than once a
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

    layers: Sequence[tuple[Tensor, Tensor]]  # each: keys and values [n_blocks, n_kv_heads, block_size, head_dim]
    slots: Tensor  # int64 [n_tokens], where a token is stored: block * block_size + place; negative: not at all
    block_tables: Tensor  # int32 [n_sequences, most blocks]; entries after a sequence's own blocks are not read
    query_lens: Tensor  # int32 [n_sequences], new tokens
    context_lens: Tensor  # int32 [n_sequences], all tokens, the new ones included

    def of_sequence(self, i: int) -> PagedKV:
        """What attention needs for sequence `i` alone."""
        own = slice(i, i + 1)
        return PagedKV(self.layers, self.slots, self.block_tables[own], self.query_lens[own], self.context_lens[own])
