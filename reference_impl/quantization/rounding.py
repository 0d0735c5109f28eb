"""Rounding to the nearest point of a grid: any group, 2 to 8 bits, symmetric or with a zero point, any scale dtype.

A grid is a stored scale and, if asymmetric, an integer zero point. Two promises hold for every weight: q is the nearest
integer for the scale *as stored* (ties to even), and therefore |w - ŵ| <= scale/2. GPTQ and AWQ are measured against
this baseline and choose their grids with the same function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from reference_impl.quantization.weight import SCALE_DTYPES, QuantizedWeight

GroupSize = int | None | Literal["tensor"]  # None: one group a row; "tensor": one scale for the whole matrix
_CHUNK = 2**16  # weights held in float64 at a time: far less than a layer
_BITS_OF = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


@dataclass(frozen=True)
class Grid:
    """The points (q - zero) * scale for q = low ... high; one scale and one zero for each group, of any shape."""

    scales: Tensor  # in the dtype they are stored in
    zeros: Tensor | None  # float64, whole numbers within low ... high
    low: int
    high: int

    def q(self, values: Tensor) -> Tensor:
        """The nearest point's integer, in float64: ties to even, values beyond the ends of the grid to its ends."""
        # If a scale is 0, all values were 0 when it was chosen, and any divisor gives the point for 0.
        steps = torch.round(values / torch.where(self.scales == 0, 1.0, self.scales.double()))
        return (steps if self.zeros is None else steps + self.zeros).clamp(self.low, self.high)

    def values(self, q: Tensor) -> Tensor:
        """The points themselves, in float64."""
        return (q if self.zeros is None else q - self.zeros) * self.scales.double()

    def rows(self, start: int, count: int) -> Grid:
        """The grids [rows, groups] of some rows, with an axis at the end along which the weights of a group lie."""
        zeros = None if self.zeros is None else self.zeros[start : start + count, :, None]
        return Grid(self.scales[start : start + count, :, None], zeros, self.low, self.high)


def choose_grid(smallest: Tensor, largest: Tensor, bits: int, symmetric: bool, scale_dtype: torch.dtype) -> Grid:
    """The grid whose ends are a group's extreme weights; `smallest` and `largest` float64, one entry for each group.

    Symmetric: -q_max ... q_max with q_max = 2^(bits-1) - 1 and scale = max|w| / q_max, so the largest weight comes back
    exactly (absmax / 127, not / 127.5) and -w gets -q.

    Asymmetric: all 2^bits points over the range from the smallest to the largest weight, *widened to include 0*, so
    that 0 is a point and the zero point an integer of the grid. A constant group comes back to within scale/2.

    A group of zeros has scale 0, zero point 0 and q = 0, never 0/0. ValueError names the group whose scale
    `scale_dtype` would round to 0 or infinity.
    """
    half = 2 ** (bits - 1)
    low, high = (1 - half, half - 1) if symmetric else (-half, half - 1)
    smallest, largest = smallest.clamp(max=0.0), largest.clamp(min=0.0)
    span = torch.maximum(-smallest, largest) if symmetric else largest - smallest
    steps = high if symmetric else high - low
    scales = _stored(span / steps, scale_dtype)
    # A scale that was rounded down must not push an end of the range half a step past the end of the grid. With a zero
    # point, itself rounded by up to half a step, there is no room to spare.
    room = steps + 0.5 if symmetric else float(steps)
    scales = torch.where(span > room * scales.double(), _next_up(scales), scales)
    if symmetric:
        return Grid(scales, None, low, high)
    zeros = low + torch.round(-smallest / torch.where(scales == 0, 1.0, scales.double()))
    return Grid(scales, torch.where(scales == 0, 0.0, zeros), low, high)


def quantize(
    weight: Tensor,
    bits: int,
    group_size: GroupSize,
    *,
    symmetric: bool = True,
    scale_dtype: torch.dtype = torch.float32,
) -> QuantizedWeight:
    """Rounds to nearest: weight [rows, columns] -> QuantizedWeight, on the weight's device.

    group_size: columns that share a scale; the last group of a row may be shorter and has a scale like the others.
    None: one scale a row (output channel). "tensor": one for the matrix, repeated for each row in the result. Ties go
    to even. ValueError names the position of NaN, infinity and anything float32 cannot hold. ValueError also for a
    shape that is no matrix, bits outside 2 ... 8, a bad group size, and a scale that `scale_dtype` cannot hold.
    """
    check(weight, bits, scale_dtype)
    columns = weight.shape[1]
    width = group_width(group_size, columns)
    parts = weight.split(max(_CHUNK // max(columns, 1), 1))
    smallest = torch.cat([split(part.double(), width).amin(-1) for part in parts])  # [rows, groups]
    largest = torch.cat([split(part.double(), width).amax(-1) for part in parts])
    if group_size == "tensor" and weight.numel():
        smallest, largest = smallest.amin().expand_as(smallest), largest.amax().expand_as(largest)
    grid = choose_grid(smallest, largest, bits, symmetric, scale_dtype)
    q = []
    for start, part in _starts(parts):
        groups = grid.rows(start, part.shape[0]).q(split(part.double(), width))
        q.append(groups.flatten(1)[:, :columns].to(torch.int8))
    zeros = None if grid.zeros is None else grid.zeros.to(torch.int8)
    return QuantizedWeight(torch.cat(q), grid.scales, zeros, bits, width)


def check(weight: Tensor, bits: int, scale_dtype: torch.dtype) -> None:
    """ValueError for what every method refuses: no matrix, NaN or infinity (with its position), bits, scale dtype."""
    if weight.ndim != 2 or not weight.is_floating_point():
        raise ValueError(f"weight must be floats [rows, columns], got {weight.dtype} {tuple(weight.shape)}")
    if not 2 <= bits <= 8:
        raise ValueError(f"bits must be 2 to 8, got {bits}")
    if scale_dtype not in SCALE_DTYPES:
        raise ValueError(f"scale_dtype must be one of {', '.join(map(str, SCALE_DTYPES))}, got {scale_dtype}")
    bad = ~(weight.abs() <= 3.4e38)  # a little below float32's maximum, so that no product overflows
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        value = weight[row, column].item()
        raise ValueError(f"weight[{row}, {column}] is {value:g}, expected a finite number of float32's range")


def group_width(group_size: GroupSize, columns: int) -> int:
    """Columns in a full group, at most those of the matrix. ValueError for anything but a positive whole number."""
    if group_size is None or group_size == "tensor":
        return max(columns, 1)
    if not isinstance(group_size, int) or isinstance(group_size, bool) or group_size < 1:
        raise ValueError(f"group size must be a positive integer, None or 'tensor', got {group_size!r}")
    return min(group_size, max(columns, 1))


def split(values: Tensor, width: int) -> Tensor:
    """[rows, columns] -> [rows, groups, width]. A partial last group is padded with zeros, which change no grid."""
    rows, columns = values.shape
    missing = -columns % width
    return torch.nn.functional.pad(values, (0, missing)).reshape(rows, -1, width)


def _starts(parts: Sequence[Tensor]) -> Iterator[tuple[int, Tensor]]:
    """Each part with the number of its first row."""
    start = 0
    for part in parts:
        yield start, part
        start += part.shape[0]


def _stored(scales: Tensor, dtype: torch.dtype) -> Tensor:
    stored = scales.to(dtype)
    if dtype is torch.float32:  # it holds every scale; one below its normal range is rounded up
        return torch.where((stored == 0) & (scales > 0), _next_up(stored), stored)
    bad = ((stored == 0) & (scales > 0)) | stored.isinf()
    if bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        scale = scales[tuple(place)].item()
        name = str(dtype).removeprefix("torch.")
        becomes = f"{stored[tuple(place)].item():g}"
        raise ValueError(
            f"group {place}: its scale {scale:.3g} becomes {becomes} in {name}; keep the scales in float32"
        )
    return stored


def _next_up(scales: Tensor) -> Tensor:
    """The next larger number of the dtype, for scales >= 0: their bits, read as an integer, plus 1."""
    return (scales.contiguous().view(_BITS_OF[scales.dtype]) + 1).view(scales.dtype)
