"""CUDA graphs: a decode step recorded once per batch size and replayed, so that no kernel waits for Python.

At batch 1 a step of an 8B model launches some six hundred kernels of a few microseconds each; launched one by one they
take longer than the GPU needs for them. A graph replays them all with one call, but with the very addresses and sizes
that it was recorded with: so inputs are copied into static buffers, and a batch is padded to the next recorded size.
A padding row has slot −1 (nothing is stored for it) and looks at one token of block 0; its logits are dropped.

`DecodeGraphs` takes the model's place in an engine: passes that are not plain decode go to the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_impl.cache.storage import KVStorage, PackedBatch

Model = Callable[[PackedBatch, Tensor], Tensor]  # (batch, rows) -> logits [n_rows, vocabulary]
Capture = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]

BATCH_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)


def sizes_up_to(most: int) -> tuple[int, ...]:
    """The sizes that batches of up to `most` sequences are padded to."""
    return tuple(size for i, size in enumerate(BATCH_SIZES) if i == 0 or BATCH_SIZES[i - 1] < most)


class CudaCapture:
    """Records a function's kernels: returns what replays them, and the tensor in which their result appears.

    All graphs share one memory pool, for only one runs at a time; record the largest first.
    """

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # compiles kernels and makes cuBLAS's work space, which a recording must not do
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            out = run()
        return graph.replay, out


@dataclass
class _Recorded:
    """One batch size: the buffers that its graph reads, what replays it, and where the logits appear."""

    batch: PackedBatch
    replay: Callable[[], object]
    logits: Tensor  # [batch size, vocabulary]


class DecodeGraphs:
    """A model for the engine that replays decode steps over the blocks of `storage`.

    max_blocks: the longest block table there can be. Sizes are recorded when they are first needed, or by `record`.
    ValueError for batch sizes below 1. The caller must not use the storage of another cache with it.
    """

    def __init__(
        self,
        model: Model,
        storage: KVStorage,
        max_blocks: int,
        batch_sizes: Sequence[int] = BATCH_SIZES,
        capture: Capture | None = None,
    ) -> None:
        if max_blocks < 1 or not batch_sizes or min(batch_sizes) < 1:
            raise ValueError(f"batch sizes {list(batch_sizes)} with tables of {max_blocks} blocks: nothing to record")
        self.model = model
        self.storage = storage
        self.max_blocks = max_blocks
        self.batch_sizes = sorted(set(batch_sizes))
        self._capture = capture or CudaCapture()
        self._recorded: dict[int, _Recorded] = {}

    @torch.inference_mode()
    def __call__(self, batch: PackedBatch, rows: Tensor) -> Tensor:
        """Logits [n_rows, vocabulary], as the model's own."""
        size = self.size_for(batch, rows)
        if size is None:
            return self.model(batch, rows)
        return self.replay(batch, size).clone()  # the next replay writes into the same place

    def size_for(self, batch: PackedBatch, rows: Tensor) -> int | None:
        """The recorded size that serves this pass; None where it is not a plain decode step, or too large.

        Only shapes are looked at, since reading a tensor would wait for the GPU: as many tokens as sequences is one
        token each, and as many rows as tokens is all of them.
        """
        n, (n_seqs, width) = len(batch.tokens), batch.block_tables.shape
        if batch.storage is not self.storage or n != n_seqs or len(rows) != n or width > self.max_blocks:
            return None
        return next((size for size in self.batch_sizes if size >= n), None)

    def record(self) -> None:
        """Records all sizes now, the largest first."""
        for size in reversed(self.batch_sizes):
            self._get(size)

    @torch.inference_mode()
    def replay(self, batch: PackedBatch, size: int) -> Tensor:
        """Logits [n_sequences, vocabulary] in the graph's own memory: the next replay overwrites them."""
        recorded = self._get(size)
        fill(recorded.batch, batch)
        recorded.replay()
        return recorded.logits[: len(batch.tokens)]

    @torch.inference_mode()
    def _get(self, size: int) -> _Recorded:
        if size not in self._recorded:
            buffers = empty_batch(self.storage, size, self.max_blocks)
            replay, logits = self._capture(lambda: self.model(buffers, buffers.last_rows))
            self._recorded[size] = _Recorded(buffers, replay, logits)
        return self._recorded[size]


def empty_batch(storage: KVStorage, size: int, max_blocks: int) -> PackedBatch:
    """The buffers of a decode step of `size` sequences, all of them padding."""

    def full(value: int, dtype: torch.dtype, *shape: int) -> Tensor:
        return torch.full(shape, value, dtype=dtype, device=storage.k.device)

    return PackedBatch(
        storage=storage,
        tokens=full(0, torch.int64, size),
        positions=full(0, torch.int64, size),
        last_rows=torch.arange(size, device=storage.k.device),
        slots=full(-1, torch.int64, size),
        block_tables=full(0, torch.int32, size, max_blocks),
        query_lens=full(1, torch.int32, size),
        context_lens=full(1, torch.int32, size),
    )


def fill(buffers: PackedBatch, batch: PackedBatch) -> None:
    """Copies a decode step into the buffers; the rows behind it become padding."""
    n, width = batch.block_tables.shape
    buffers.tokens[:n].copy_(batch.tokens)
    buffers.positions[:n].copy_(batch.positions)
    buffers.slots[:n].copy_(batch.slots)
    buffers.context_lens[:n].copy_(batch.context_lens)
    buffers.block_tables[:n, :width].copy_(batch.block_tables)  # what is behind a sequence's blocks is never read
    if n < len(buffers.tokens):
        buffers.tokens[n:] = 0
        buffers.positions[n:] = 0
        buffers.slots[n:] = -1
        buffers.context_lens[n:] = 1
        buffers.block_tables[n:, 0] = 0
