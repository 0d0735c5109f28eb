"""The memory of the caches, and one forward pass over it: tensors of blocks, and the index tensors of a batch.

A token's keys and values go to a slot, which is a place in a block; attention finds them again through the block table
of its sequence. A cache decides only which sequence has which blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from reference_impl import kernels

if TYPE_CHECKING:
    from reference_impl.bounds.config import ModelConfig


class KVStorage:
    """The tensors: k and v [n_blocks, n_kv_heads, block_size, head_dim] of each layer, one tensor for all layers."""

    def __init__(
        self, config: ModelConfig, n_blocks: int, block_size: int, dtype: torch.dtype, device: str | torch.device
    ) -> None:
        shape = (config.n_layers, n_blocks, config.n_kv_heads, block_size, config.head_dim)
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros(shape, dtype=dtype, device=device)
        self.layers = list(zip(self.k.unbind(0), self.v.unbind(0), strict=True))  # views, made once
        self.block_size = block_size

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one token over all layers, keys and values."""
        n_layers, _, n_kv_heads, _, head_dim = self.k.shape
        return 2 * n_layers * n_kv_heads * head_dim * self.k.element_size()

    def copy_block(self, source: int, copy: int) -> None:
        """Copies the keys and values of all layers from one block to another."""
        self.k[:, copy] = self.k[:, source]
        self.v[:, copy] = self.v[:, source]

    def poison(self, block: int) -> None:
        """Fills a block with NaN, so that reading it too early shows in every logit."""
        self.k[:, block] = float("nan")
        self.v[:, block] = float("nan")


@dataclass(eq=False)
class PackedBatch(kernels.PagedKV):
    """The `ForwardBatch` of every cache here: new tokens, and where keys and values lie."""

    tokens: Tensor  # int64 [n_tokens]
    positions: Tensor  # int64 [n_tokens]
    last_rows: Tensor  # int64 [n_sequences]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        kernels.store_kv(k, v, self, layer)
        return kernels.paged_attention(q, self, layer)


def pack(
    storage: KVStorage, tokens: Sequence[Sequence[int]], starts: Sequence[int], tables: Sequence[Sequence[int]]
) -> PackedBatch:
    """Packs the new tokens of each sequence, which had `starts` tokens and now lives in the blocks of `tables`."""
    counts = np.array([len(new) for new in tokens])
    first = np.array(starts)
    ends = counts.cumsum()
    row = np.arange(len(counts)).repeat(counts)  # the sequence of each token
    positions = np.arange(ends[-1]) - (ends - counts)[row] + first[row]
    block_tables = np.zeros((len(tables), max(map(len, tables))), dtype=np.int32)
    for i, table in enumerate(tables):
        block_tables[i, : len(table)] = table
    block, place = np.divmod(positions, storage.block_size)
    slots = block_tables[row, block].astype(np.int64) * storage.block_size + place

    def send(values: np.ndarray, dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(values).to(device=storage.k.device, dtype=dtype, non_blocking=True)

    return PackedBatch(
        layers=storage.layers,
        tokens=send(np.array([token for new in tokens for token in new], dtype=np.int64), torch.int64),
        positions=send(positions, torch.int64),
        last_rows=send(ends - 1, torch.int64),
        slots=send(slots, torch.int64),
        block_tables=send(block_tables, torch.int32),
        query_lens=send(counts, torch.int32),
        context_lens=send(first + counts, torch.int32),
    )
