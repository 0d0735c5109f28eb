"""Passes recorded once and replayed, so that no kernel waits for Python: on a CPU, and as CUDA graphs on a GPU.

At batch 1 a step of an 8B model launches some six hundred kernels of a few microseconds each. Launched one by one they
take longer than the GPU needs for them. A recording replays all of them with one call, but with the addresses and sizes
that it was recorded with. So the model runs once on buffers that stay in place. When a pass of the same shape comes,
its index tensors are copied into the buffers, and the launches run again. All other passes go to the model itself.

`DecodeGraphs` does this on a GPU. It pads a batch to the next of a few sizes, since recording one takes seconds; a
padding row has slot −1 (nothing is stored) and attends to one token of block 0, and its logits are dropped.
`RecordedPasses` does it on a CPU, where recording costs no more than the pass, and keeps the shapes that were used
last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from reference_impl.cache.storage import KVStorage, PackedBatch

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch

Model = Callable[..., Tensor]  # (batch, rows or None) -> logits [n_rows, vocabulary]
# Runs a function. Returns a call that runs its kernels again, and the tensor in which their result appears.
Capture = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]
Shape = tuple[int, int, int]  # tokens, sequences, width of the block tables

BATCH_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)
MOST_TOKENS = 63  # on a CPU the model runs longer passes, whose work is large beside the launches
MOST_KEPT = 256  # most tokens of all recordings there, since each keeps its results; drops the least recently used


class CannotRecordError(Exception):
    """The pass computes something that a recording would miss."""


@dataclass
class Recorded:
    """One shape: the buffers that its kernels read, what runs them again, and where the logits appear."""

    buffers: PackedBatch
    replay: Callable[[], object]
    logits: Tensor  # [tokens, vocabulary]


class Replayed:
    """A model for the engine: it replays the passes whose shape it records, and leaves the others to `model`.

    It replays a pass that wants logits after each of its tokens, in order. `keep`: logits stay as they are; without it
    the next pass writes into the same memory. Addresses are recorded, so make a new one after replacing a weight.
    """

    def __init__(self, model: Model, capture: Capture, keep: bool = True) -> None:
        self.model = model
        self.keep = keep
        self.refused = ""  # why nothing can be recorded, in which case the model runs every pass
        self._capture = capture
        self._recorded: OrderedDict[Shape, Recorded] = OrderedDict()

    @property
    def shapes(self) -> list[Shape]:
        """The shapes that are recorded, the most recently used last."""
        return list(self._recorded)

    def shape_of(self, batch: ForwardBatch, rows: Tensor | None) -> Shape | None:
        """The recording that serves this pass, or None if the model is to run it."""
        raise NotImplementedError

    @torch.inference_mode()
    def __call__(self, batch: ForwardBatch, rows: Tensor | None = None) -> Tensor:
        """Logits [n_rows, vocabulary], as the model's own."""
        shape = None if self.refused else self.shape_of(batch, rows)
        if shape is None or not isinstance(batch, PackedBatch):
            return self.model(batch, rows)
        try:
            logits = self.run(batch, shape)
        except CannotRecordError as reason:
            self.refused = str(reason)
            return self.model(batch, rows)
        return logits.clone() if self.keep else logits

    @torch.inference_mode()
    def run(self, batch: PackedBatch, shape: Shape) -> Tensor:
        """Logits [tokens, vocabulary] in the recording's own memory: the next pass of this shape overwrites them."""
        recorded = self._recorded.get(shape)
        if recorded is None:
            buffers = padding(batch.layers, shape)
            fill(buffers, batch)
            recorded = self._record(shape, buffers)
        else:
            self._recorded.move_to_end(shape)
            fill(recorded.buffers, batch)
            recorded.replay()
        n = len(batch.tokens)
        return recorded.logits if n == len(recorded.logits) else recorded.logits[:n]

    def _record(self, shape: Shape, buffers: PackedBatch) -> Recorded:
        replay, logits = self._capture(lambda: self.model(buffers, None))
        recorded = self._recorded[shape] = Recorded(buffers, replay, logits)
        return recorded


def padding(layers: Sequence[tuple[Tensor, Tensor]], shape: Shape) -> PackedBatch:
    """The buffers of a pass that stores nothing and in which each sequence sees one token of block 0."""
    n_tokens, n_seqs, width = shape
    device = layers[0][0].device

    def full(value: int, dtype: torch.dtype, *size: int) -> Tensor:
        return torch.full(size, value, dtype=dtype, device=device)

    return PackedBatch(
        layers=layers,
        tokens=full(0, torch.int64, n_tokens),
        positions=full(0, torch.int64, n_tokens),
        last_rows=torch.arange(n_seqs, device=device),
        slots=full(-1, torch.int64, n_tokens),
        block_tables=full(0, torch.int32, n_seqs, width),
        query_lens=full(1, torch.int32, n_seqs),
        context_lens=full(1, torch.int32, n_seqs),
    )


def fill(buffers: PackedBatch, batch: PackedBatch) -> None:
    """Copies a pass into the buffers, and makes their later rows padding. The pass may have narrower block tables."""
    n, (n_seqs, width) = len(batch.tokens), batch.block_tables.shape
    if n == len(buffers.tokens):
        into = buffers
    else:  # a decode step: one token a sequence
        into = PackedBatch(
            buffers.layers,
            buffers.slots[:n],
            buffers.block_tables[:n],
            buffers.query_lens[:n],
            buffers.context_lens[:n],
            buffers.tokens[:n],
            buffers.positions[:n],
            buffers.last_rows[:n],
        )
        buffers.tokens[n:] = 0
        buffers.positions[n:] = 0
        buffers.slots[n:] = -1
        buffers.context_lens[n:] = 1
        buffers.block_tables[n:, 0] = 0
    into.tokens.copy_(batch.tokens)
    into.positions.copy_(batch.positions)
    into.slots.copy_(batch.slots)
    into.context_lens.copy_(batch.context_lens)
    if n != n_seqs:  # else each is 1, as in the buffers
        into.query_lens.copy_(batch.query_lens)
    # Nothing reads the entries after a sequence's own blocks.
    (into.block_tables[:, :width] if width < into.block_tables.shape[1] else into.block_tables).copy_(
        batch.block_tables
    )


class DecodeGraphs(Replayed):
    """Replays decode steps over the blocks of `storage`, as CUDA graphs.

    max_blocks: the longest block table there can be. A size is recorded when it is first needed, or by `record`.
    ValueError for batch sizes below 1. The caller must not use the storage of another cache with it.
    """

    def __init__(
        self,
        model: Model,
        storage: KVStorage,
        max_blocks: int,
        batch_sizes: Sequence[int] = BATCH_SIZES,
        capture: Capture | None = None,
        keep: bool = True,
    ) -> None:
        if max_blocks < 1 or not batch_sizes or min(batch_sizes) < 1:
            raise ValueError(f"batch sizes {list(batch_sizes)} with tables of {max_blocks} blocks: nothing to record")
        super().__init__(model, capture or CudaCapture(), keep)
        self.storage = storage
        self.max_blocks = max_blocks
        self.batch_sizes = sorted(set(batch_sizes))

    def shape_of(self, batch: ForwardBatch, rows: Tensor | None) -> Shape | None:
        """The recorded size that serves this pass; None if it is no plain decode step, or too large.

        It looks at shapes alone, since reading a tensor would wait for the GPU: as many tokens as sequences means one
        token each, and as many rows as tokens means all of them.
        """
        if not isinstance(batch, PackedBatch) or batch.layers is not self.storage.layers:
            return None
        n, (n_seqs, width) = len(batch.tokens), batch.block_tables.shape
        if n != n_seqs or (rows is not None and len(rows) != n) or width > self.max_blocks:
            return None
        size = next((size for size in self.batch_sizes if size >= n), None)
        return None if size is None else (size, size, self.max_blocks)

    @torch.inference_mode()
    def record(self) -> None:
        """Records all sizes now, the largest first."""
        for size in reversed(self.batch_sizes):
            shape = (size, size, self.max_blocks)
            if shape not in self._recorded:
                self._record(shape, padding(self.storage.layers, shape))


def sizes_up_to(most: int) -> tuple[int, ...]:
    """The sizes that batches of up to `most` sequences are padded to."""
    return tuple(size for i, size in enumerate(BATCH_SIZES) if i == 0 or BATCH_SIZES[i - 1] < most)


class CudaCapture:
    """Records a function's kernels in a CUDA graph.

    All graphs share one memory pool, since only one runs at a time. Record the largest first.
    """

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # first compiles kernels and makes cuBLAS's workspace, which a recording must not do
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            out = run()
        graph.replay()  # since recording ran nothing
        return graph.replay, out


class RecordedPasses(Replayed):
    """Replays short passes on a CPU, which is right only if launches of our kernels are all that the model computes.

    So a recording watches PyTorch. If one of its own operators computes anything (float64, a GPU, a fallback),
    `refused` names it, and every pass goes to the model.
    """

    def __init__(self, model: Model, keep: bool = True) -> None:
        super().__init__(model, capture_launches, keep)
        self._layers: object = None

    def shape_of(self, batch: ForwardBatch, rows: Tensor | None) -> Shape | None:
        """The shape, with tables widened to the next eighth, so that not every new block makes a new shape."""
        n = len(batch.tokens)
        if not isinstance(batch, PackedBatch) or n > MOST_TOKENS:
            return None
        if rows is not None and (len(rows) != n or rows.tolist() != list(range(n))):
            return None  # a piece of a prompt, whose shape hardly ever comes again
        if batch.layers is not self._layers:  # another cache has other addresses
            self._recorded.clear()
            self._layers = batch.layers
        n_seqs, width = batch.block_tables.shape
        return n, n_seqs, -(-width // 8) * 8

    def _record(self, shape: Shape, buffers: PackedBatch) -> Recorded:
        recorded = super()._record(shape, buffers)
        while sum(tokens for tokens, *_ in self._recorded) > MOST_KEPT:
            self._recorded.popitem(last=False)
        return recorded


def capture_launches(run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
    """Notes a function's launches of CPU kernels. CannotRecordError if it computes anything else."""
    try:
        from reference_impl.kernels.cpu.recording import Recording
    except ImportError as missing:  # without Numba there is nothing to record
        raise CannotRecordError(str(missing)) from None
    recording = Recording()
    with recording, _Watch():
        out = run()
    return recording.replay, out


class _Watch(TorchDispatchMode):
    """Lets operators through that compute nothing: new memory, and views of existing memory."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._schema.name
        parts = out if isinstance(out, (tuple, list)) else (out,)
        makes_memory = name in ("aten::empty", "aten::empty_like", "aten::empty_strided")
        if not makes_memory and (func._schema.is_mutable or not all(_is_view(part, args[0]) for part in parts)):
            raise CannotRecordError(name)
        return out


def _is_view(part: Any, of: Any) -> bool:
    both = isinstance(part, Tensor) and isinstance(of, Tensor)
    return both and part.untyped_storage().data_ptr() == of.untyped_storage().data_ptr()
