"""A quantized matrix as the kernels read it: integer codes in whole blocks, and float32 scales.

Every group starts a block and fills whole blocks (16 codes of int8, 32 of int4); its rest is padded with zeros, so a
kernel needs no special case inside a row. The codes are those of the checkpoint, in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

BLOCK = {8: 16, 4: 32}  # codes that take up 16 bytes
ROWS = 1024  # rows that plain PyTorch widens at a time


@dataclass(frozen=True, eq=False)
class PackedWeight:
    """A matrix [rows, columns]: weight[r, c] = codes[r, c] * scales[r, g] - shifts[r, g] with g = c // group_size.

    codes: int8 [rows, stored], or for 4 bits uint8 [rows, stored / 2]. scales: float32 [rows, groups]. shifts: float32
    like scales (zero points times scales), or None. `width`: codes that a full group takes up, padding included.
    """

    codes: Tensor
    scales: Tensor
    shifts: Tensor | None
    bits: int
    group_size: int
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.columns

    @property
    def width(self) -> int:
        block = BLOCK[self.bits]
        return -(-self.group_size // block) * block

    @property
    def stored(self) -> int:
        """Codes of a row, padding included."""
        return self.codes.shape[1] * (1 if self.bits == 8 else 2)

    @property
    def device(self) -> torch.device:
        return self.codes.device

    @property
    def tensors(self) -> list[Tensor]:
        return [t for t in (self.codes, self.scales, self.shifts) if t is not None]

    @property
    def n_bytes(self) -> int:
        """Bytes that a matrix-vector product must read."""
        return sum(t.numel() * t.element_size() for t in self.tensors)

    def part(self, low: int, high: int) -> Tensor:
        """Rows low to high as float32 [rows, columns]."""
        grouped = self._grouped(self.codes[low:high]).to(torch.float32) * self.scales[low:high, :, None]
        if self.shifts is not None:
            grouped = grouped - self.shifts[low:high, :, None]
        return grouped.flatten(1)[:, : self.columns]

    def integers(self) -> Tensor:
        """The codes as `pack` was given them, int8 [rows, columns]."""
        return self._grouped(self.codes).flatten(1)[:, : self.columns].contiguous()

    def _grouped(self, codes: Tensor) -> Tensor:
        """Stored rows as int8 [rows, groups, group_size]."""
        if self.bits == 4:
            blocks = codes.view(torch.int8).unflatten(1, (-1, 16))
            codes = torch.stack(((blocks << 4) >> 4, blocks >> 4), dim=2).flatten(1)  # [rows, blocks, 2, 16] before
        groups = self.scales.shape[1]
        whole = F.pad(codes, (0, groups * self.width - codes.shape[1]))
        return whole.unflatten(1, (groups, self.width))[:, :, : self.group_size]

    def to(self, device: torch.device | str) -> PackedWeight:
        shifts = None if self.shifts is None else self.shifts.to(device)
        return PackedWeight(
            self.codes.to(device), self.scales.to(device), shifts, self.bits, self.group_size, self.columns
        )


def pack(q: Tensor, scales: Tensor, zeros: Tensor | None, bits: int, group_size: int) -> PackedWeight:
    """Packs (q - zeros) * scales: q int8 [rows, columns], scales [rows, groups], zeros int8 like scales, or None.

    Codes of up to 4 bits take 4 bits, longer ones 8. ValueError if the shapes do not fit each other.
    """
    rows, columns = q.shape
    groups = -(-columns // group_size)
    if scales.shape != (rows, groups) or (zeros is not None and zeros.shape != scales.shape):
        raise ValueError(f"pack: q {list(q.shape)} in groups of {group_size} does not fit scales {list(scales.shape)}")
    kept = 4 if bits <= 4 else 8
    block = BLOCK[kept]
    width = -(-group_size // block) * block
    last = columns - (groups - 1) * group_size
    stored = (groups - 1) * width + -(-last // block) * block
    filled = F.pad(q, (0, groups * group_size - columns)).unflatten(1, (groups, group_size))
    codes = F.pad(filled, (0, width - group_size)).flatten(1)[:, :stored].contiguous()
    if kept == 4:
        low, high = codes.unflatten(1, (-1, 2, 16)).unbind(2)
        codes = ((low & 15) | (high << 4)).flatten(1).view(torch.uint8).contiguous()
    wide = scales.to(torch.float32).contiguous()
    shifts = None if zeros is None else (wide * zeros.to(torch.float32)).contiguous()
    return PackedWeight(codes, wide, shifts, kept, group_size, columns)
