"""Passes recorded once per shape and replayed, so that no kernel waits for Python: on a CPU what `graphs` is on a GPU.

The model runs once on buffers that stay, while its kernel launches are noted; whenever a pass of the same shape comes,
its index tensors are copied into the buffers and all launches run again in one call. That is right only if everything
that the model computes is such a launch, so the recording watches PyTorch: where an operator of its own computes
anything (float64, a GPU, a fallback), all is left to the model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from reference_impl.cache.storage import KVStorage, PackedBatch

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch
    from reference_impl.kernels.cpu.threads import Recording

MOST_TOKENS = 63  # a longer pass is left to the model: its work is large beside the launches
MOST_KEPT = 256  # tokens of all recordings together: each keeps what it computes; the least recently used goes first
EMPTY = ("aten::empty", "aten::empty_like", "aten::empty_strided")

Model = Callable[..., Tensor]  # (batch, rows or None) -> logits [n_rows, vocabulary]
Shape = tuple[int, ...]


class _OwnWorkError(Exception):
    """PyTorch itself computed something."""


class _Watch(TorchDispatchMode):
    """Lets through what computes nothing: new memory, and views of what is there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._schema.name
        parts = out if isinstance(out, (tuple, list)) else (out,)
        if name not in EMPTY and (func._schema.is_mutable or not all(_is_view(part, args[0]) for part in parts)):
            raise _OwnWorkError(name)
        return out


def _is_view(part: Any, of: Any) -> bool:
    both = isinstance(part, Tensor) and isinstance(of, Tensor)
    return both and part.untyped_storage().data_ptr() == of.untyped_storage().data_ptr()


@dataclass
class _Recorded:
    batch: PackedBatch  # the buffers
    rows: Tensor | None
    logits: Tensor  # where they appear
    recording: Recording


class RecordedPasses:
    """A model for the engine that replays short passes where it can, and is the model itself where it cannot.

    `keep`: logits stay as they are; without, the next pass writes into the same memory.

    What is recorded are addresses: whoever replaces a weight afterwards must make a new one.
    """

    def __init__(self, model: Model, keep: bool = True) -> None:
        self.model = model
        self.keep = keep
        self.refused = ""  # the operator that was in the way; then all goes to the model
        self._recorded: OrderedDict[Shape, _Recorded] = OrderedDict()
        self._storage: KVStorage | None = None

    @property
    def shapes(self) -> list[Shape]:
        """What is recorded: (tokens, sequences, width of the block tables, rows or -1 for all)."""
        return list(self._recorded)

    @torch.inference_mode()
    def __call__(self, batch: ForwardBatch, rows: Tensor | None = None) -> Tensor:
        """Logits [n_rows, vocabulary], as the model's own."""
        if self.refused or not isinstance(batch, PackedBatch) or len(batch.tokens) > MOST_TOKENS:
            return self.model(batch, rows)
        if rows is not None and len(rows) != len(batch.tokens):
            return self.model(batch, rows)  # a piece of a prompt: its shape hardly comes again
        if batch.storage is not self._storage:  # another cache lies elsewhere
            self._recorded.clear()
            self._storage = batch.storage
        n_seqs, width = batch.block_tables.shape
        width = -(-width // 8) * 8  # so that a growing context is not a new shape with every block
        shape = (len(batch.tokens), n_seqs, width, -1 if rows is None else len(rows))
        recorded = self._recorded.get(shape)
        if recorded is None:
            return self._record(shape, batch, rows, width)
        self._recorded.move_to_end(shape)
        _fill(recorded.batch, batch)
        if rows is not None and recorded.rows is not None:
            recorded.rows.copy_(rows)
        recorded.recording.replay()
        return recorded.logits.clone() if self.keep else recorded.logits

    def _record(self, shape: Shape, batch: PackedBatch, rows: Tensor | None, width: int) -> Tensor:
        try:
            from reference_impl.kernels.cpu.threads import Recording
        except ImportError as missing:  # without Numba there is nothing to record
            self.refused = str(missing)
            return self.model(batch, rows)
        buffers = PackedBatch(
            batch.storage,
            batch.tokens.clone(),
            batch.positions.clone(),
            batch.last_rows.clone(),
            batch.slots.clone(),
            torch.zeros(len(batch.block_tables), width, dtype=torch.int32),
            batch.query_lens.clone(),
            batch.context_lens.clone(),
        )
        _fill(buffers, batch)
        own_rows = None if rows is None else rows.clone()
        recording = Recording()
        try:
            with recording, _Watch():
                logits = self.model(buffers, own_rows)
        except _OwnWorkError as found:
            self.refused = str(found)
            return self.model(batch, rows)
        self._recorded[shape] = _Recorded(buffers, own_rows, logits, recording)
        while sum(tokens for tokens, *_ in self._recorded) > MOST_KEPT:
            self._recorded.popitem(last=False)
        return logits.clone()

    def __getattr__(self, name: str) -> Any:
        """Everything else is the model's."""
        return getattr(cast(Any, self.__dict__["model"]), name)


def _fill(buffers: PackedBatch, batch: PackedBatch) -> None:
    """Copies a pass into the buffers; block tables may be narrower."""
    buffers.tokens.copy_(batch.tokens)
    buffers.positions.copy_(batch.positions)
    buffers.slots.copy_(batch.slots)
    buffers.query_lens.copy_(batch.query_lens)
    buffers.context_lens.copy_(batch.context_lens)
    buffers.block_tables[:, : batch.block_tables.shape[1]].copy_(batch.block_tables)
