"""Offload: moves a sequence's blocks to host memory and back, so that a preempted request need not be recomputed.

`swap_out` or `swap_in` starts a swap, and `poll` says when it has ended. In between the blocks are in flight: the
sequence still holds them, so no other can get them, and the cache refuses to read or change them. On a GPU the copies
run on a stream of their own, between pinned host memory and the device, and an event marks their end. On a CPU "device"
and "host" are two pools of the same memory, and `poll` makes the copy: that is as late as a real one can happen, so
tests see a block that is used too early. Kwon et al. 2023, section 4.5, compare swapping with recomputing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

import torch

from reference_impl.cache.blocks import BlockAllocator
from reference_impl.cache.paged import PagedCache

Place = Literal["device", "leaving", "host", "arriving"]


Pair = tuple[int, int]  # a block of the device and one of the host


@dataclass(eq=False)
class Swap:
    """One sequence on its way. `done` says whether the copies have ended, `wait` blocks until they have."""

    seq: Hashable
    arriving: bool  # at the device; else at the host
    pairs: list[Pair]
    done: Callable[[], bool]
    wait: Callable[[], None] = lambda: None


class Offloader:
    """Swaps sequences of one `PagedCache` to and from `n_host_blocks` blocks of host memory.

    MemoryError if either side lacks blocks, KeyError for an unknown sequence, RuntimeError for a sequence that is
    somewhere else; each leaves everything as it was. If the cache is in debug mode, each block has a checksum taken
    before it leaves and compared when it is back.
    """

    def __init__(self, cache: PagedCache, n_host_blocks: int) -> None:
        self.cache = cache
        self.host = BlockAllocator(n_host_blocks, cache.block_size)
        storage = cache.storage
        on_gpu = storage.k.device.type == "cuda"
        n_layers, _, *block = storage.k.shape
        # [host blocks, k and v, layers, kv_heads, block_size, head_dim]: a block is contiguous, so one copy moves it.
        self.host_blocks = torch.zeros((n_host_blocks, 2, n_layers, *block), dtype=storage.k.dtype, pin_memory=on_gpu)
        self._stream = torch.cuda.Stream(storage.k.device) if on_gpu else None
        self._swaps: dict[Hashable, Swap] = {}
        self._landed: list[Hashable] = []  # swaps that ended; the next poll returns them
        self._tokens: dict[Hashable, list[int]] = {}  # of each sequence that is on the host or on its way there
        self._checksums: dict[Hashable, dict[int, int]] = {}  # of each host block

    def where(self, seq: Hashable) -> Place:
        """Where a sequence is; KeyError if neither side knows it."""
        if seq in self._swaps:
            return "arriving" if self._swaps[seq].arriving else "leaving"
        if seq in self._tokens:
            return "host"
        self.cache.length(seq)
        return "device"

    def swap_out(self, seq: Hashable) -> None:
        """Starts to copy a sequence to the host. Its device blocks are free once `poll` has returned it."""
        self._require("device", seq)
        self.cache.require_at_rest(seq)
        self.host.add(seq)
        try:
            self.host.append([(seq, self.cache.length(seq))])
        except MemoryError as error:
            self.host.free(seq)
            raise MemoryError(f"host memory: {error}") from None
        pairs = list(zip(self.cache.block_table(seq), self.host.block_table(seq), strict=True))
        self._tokens[seq] = self.cache.tokens(seq)
        if self.cache.debug:
            self._checksums[seq] = {ours: self._checksum(block) for block, ours in pairs}
        self.cache.in_flight.add(seq)
        self._start(seq, arriving=False, pairs=pairs)

    def swap_in(self, seq: Hashable) -> None:
        """Starts to copy a sequence back. It can be used once `poll` has returned it.

        Blocks that the prefix index still has are shared instead of copied.
        """
        self._require("host", seq)
        n_known = self.cache.reserve_whole(seq, self._tokens[seq])
        pairs = list(zip(self.cache.block_table(seq), self.host.block_table(seq), strict=True))
        self.cache.in_flight.add(seq)
        self._start(seq, arriving=True, pairs=pairs[n_known // self.cache.block_size :])

    def poll(self) -> list[Hashable]:
        """Ends the swaps whose copies are done, and returns their sequences, which now rest on the host or the device.

        RuntimeError if a checksum differs: the sequence is forgotten and must be computed again.
        """
        self.cache.require_no_open_pass()
        for swap in list(self._swaps.values()):
            if swap.done():
                self._land(swap)
        landed, self._landed = self._landed, []
        return landed

    def wait(self) -> list[Hashable]:
        """Waits for all copies, then as `poll`."""
        for swap in self._swaps.values():
            swap.wait()
        return self.poll()

    def free(self, seq: Hashable) -> None:
        """Forgets a sequence that is on the host or in flight, as after a cancellation. KeyError for any other."""
        if seq not in self._tokens:
            raise KeyError(f"no sequence {seq!r} on the host")
        self.cache.require_no_open_pass()
        swap = self._swaps.pop(seq, None)
        if swap is not None:
            swap.wait()
            self._leave_device(seq)
        self._leave_host(seq)

    def _land(self, swap: Swap) -> None:
        seq = swap.seq
        del self._swaps[seq]
        if not swap.arriving:
            self._leave_device(seq)
        else:
            expected = self._checksums.get(seq, {})
            damaged = [block for block, host in swap.pairs if expected and self._checksum(block) != expected[host]]
            self._leave_host(seq)
            if damaged:
                self._leave_device(seq)
                raise RuntimeError(f"sequence {seq!r} came back damaged: checksum differs in blocks {damaged}")
            self.cache.in_flight.discard(seq)
            self.cache.share_blocks(seq, 0)
        self._landed.append(seq)

    def _leave_device(self, seq: Hashable) -> None:
        self.cache.in_flight.discard(seq)
        self.cache.free(seq)

    def _leave_host(self, seq: Hashable) -> None:
        self.host.free(seq)
        del self._tokens[seq]
        self._checksums.pop(seq, None)

    def _require(self, place: Place, seq: Hashable) -> None:
        found = self.where(seq)
        if found != place:
            raise RuntimeError(f"sequence {seq!r} is not on the {place}: {found}")

    def _start(self, seq: Hashable, arriving: bool, pairs: list[Pair]) -> None:
        copy = self._copy_in if arriving else self._copy_out
        if self._stream is None:

            def copy_now() -> bool:
                copy(pairs)
                return True

            self._swaps[seq] = Swap(seq, arriving, pairs, done=copy_now)
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))  # waits for everything written so far
        with torch.cuda.stream(self._stream):
            copy(pairs)
            event = torch.cuda.Event()
            event.record()
        self._swaps[seq] = Swap(seq, arriving, pairs, done=event.query, wait=event.synchronize)

    def _copy_out(self, pairs: list[Pair]) -> None:
        storage = self.cache.storage
        for block, host in pairs:
            both = torch.stack((storage.k[:, block], storage.v[:, block]))
            self.host_blocks[host].copy_(both, non_blocking=True)

    def _copy_in(self, pairs: list[Pair]) -> None:
        storage = self.cache.storage
        for block, host in pairs:
            both = self.host_blocks[host].to(storage.k.device, non_blocking=True)
            storage.k[:, block], storage.v[:, block] = both[0], both[1]

    def _checksum(self, block: int) -> int:
        storage = self.cache.storage
        both = torch.stack((storage.k[:, block], storage.v[:, block])).cpu()
        return zlib.crc32(both.view(torch.uint8).numpy().tobytes())
