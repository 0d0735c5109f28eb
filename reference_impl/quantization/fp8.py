"""FP8 (e4m3) with a scale for each block: a sign, 4 bits of exponent and 3 of mantissa in place of an integer.

A float's steps grow with the number, so one outlier costs its block little, and small weights keep 3 bits of mantissa
over a range of 2^14. The blocks are tiles of rows and columns, 128 by 128 as in DeepSeek-V3 (2024, section 3.3.2).
Format: Micikevicius et al. 2022, "FP8 formats for deep learning"; largest value 448, no infinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from reference_impl.quantization.rounding import check

E4M3 = torch.float8_e4m3fn
LARGEST = 448.0
_ONE_SCALE = {"tensor": lambda rows, columns: (rows, columns), "channel": lambda rows, columns: (1, columns)}


@dataclass(frozen=True, eq=False)
class Fp8Weight:
    """`values` float8_e4m3fn [rows, columns]; `scales` float32 [ceil(rows / block[0]), ceil(columns / block[1])]."""

    values: Tensor
    scales: Tensor
    block: tuple[int, int]

    @property
    def n_bytes(self) -> int:
        return self.values.numel() + 4 * self.scales.numel()

    def dequantize(self) -> Tensor:
        """float32 [rows, columns]: each value times the scale of its block."""
        return self.values.float() * _spread(self.scales, self.block, self.values.shape)


def quantize_fp8(weight: Tensor, block: tuple[int, int] | str = (128, 128)) -> Fp8Weight:
    """scale = max|w| / 448 of each block, in float32; then each w / scale to the nearest e4m3 number, ties to even.

    weight [rows, columns]; block (rows, columns), or "channel" for one scale a row, "tensor" for one in all. Blocks at
    the lower and right edge may be smaller. The error of a weight is at most 2^-4 of itself, or scale · 2^-10 where
    that is more (e4m3's smallest step is 2^-9). The quotient is taken in float32. A block of zeros has scale 0 and
    comes back as zeros. Raises ValueError for NaN and infinity, naming the position, and for a bad shape or block.
    """
    check(weight, 8, torch.float32)
    rows, columns = weight.shape
    if isinstance(block, str):
        if block not in _ONE_SCALE:
            raise ValueError(f"block must be (rows, columns), 'channel' or 'tensor', got {block!r}")
        block = _ONE_SCALE[block](max(rows, 1), max(columns, 1))
    if len(block) != 2 or min(block) < 1:
        raise ValueError(f"block must be (rows, columns), both at least 1, got {block}")
    high, wide = block
    padded = torch.nn.functional.pad(weight.float().abs(), (0, -columns % wide, 0, -rows % high))
    tiles = padded.unflatten(0, (-1, high)).unflatten(2, (-1, wide))  # [row blocks, high, column blocks, wide]
    largest = tiles.amax((1, 3))
    # Below float32's normal range a scale would be rounded coarsely, even to 0.
    scales = torch.where(largest > 0, (largest / LARGEST).clamp(min=torch.finfo(torch.float32).tiny), 0.0)
    quotients = weight.float() / _spread(torch.where(scales == 0, 1.0, scales), block, weight.shape)
    return Fp8Weight(quotients.clamp(-LARGEST, LARGEST).to(E4M3), scales, block)


def _spread(scales: Tensor, block: tuple[int, int], shape: torch.Size) -> Tensor:
    """A scale for each block -> a scale for each weight."""
    tall = scales.repeat_interleave(block[0], dim=0)[: shape[0]]
    return tall.repeat_interleave(block[1], dim=1)[:, : shape[1]]
