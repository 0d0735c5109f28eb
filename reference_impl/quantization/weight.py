"""What every method of this folder returns: a matrix as small integers, with one scale per group of a row.

weight[r, c] = (q[r, c] - zeros[r, g]) * scales[r, g] with g = c // group_size; without zero points they count as 0.
Rounding, GPTQ and AWQ differ in how they choose q, not in what they store, so one layer and one kernel serve them all.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

SCALE_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True, eq=False)
class QuantizedWeight:
    """A quantized matrix [rows, columns]; columns are the layer's inputs, along which the groups run.

    `q` int8 [rows, columns] within -2^(bits-1) ... 2^(bits-1) - 1. `scales` [rows, groups], groups =
    ceil(columns / group_size), all finite and >= 0, in the dtype they are stored in (float32, float16 or bfloat16:
    widening to float32 is exact, so a kernel may). `zeros` int8 [rows, groups] on the same grid as q, or None
    (symmetric). The last group of a row may be shorter. Raises ValueError naming the part that does not fit.
    """

    q: Tensor
    scales: Tensor
    zeros: Tensor | None
    bits: int
    group_size: int

    def __post_init__(self) -> None:
        if self.q.ndim != 2 or self.q.dtype != torch.int8:
            raise ValueError(f"q must be int8 [rows, columns], got {self.q.dtype} {tuple(self.q.shape)}")
        if not 2 <= self.bits <= 8:
            raise ValueError(f"bits must be 2 to 8, got {self.bits}")
        if self.group_size < 1:
            raise ValueError(f"group_size must be at least 1, got {self.group_size}")
        rows, columns = self.q.shape
        expected = (rows, -(-columns // self.group_size))
        if tuple(self.scales.shape) != expected or self.scales.dtype not in SCALE_DTYPES:
            raise ValueError(f"scales must be floats {expected}, got {self.scales.dtype} {tuple(self.scales.shape)}")
        if self.zeros is not None and (tuple(self.zeros.shape) != expected or self.zeros.dtype != torch.int8):
            raise ValueError(f"zeros must be int8 {expected}, got {self.zeros.dtype} {tuple(self.zeros.shape)}")
        if not bool((self.scales.isfinite() & (self.scales >= 0)).all()):
            raise ValueError("scales must be finite and not negative")
        half = 2 ** (self.bits - 1)
        for name, values in (("q", self.q), ("zeros", self.zeros)):
            if values is not None and values.numel() and not -half <= int(values.min()) <= int(values.max()) < half:
                raise ValueError(f"{name} must be {self.bits}-bit integers, {-half} to {half - 1}")

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.q.shape
        return rows, columns

    @property
    def n_bytes(self) -> int:
        """Bytes when packed: the rows of q and of zeros at `bits` bits each, padded to whole bytes, and the scales."""
        rows, columns = self.q.shape
        groups = self.scales.shape[1]
        packed = rows * -(-columns * self.bits // 8)
        packed_zeros = 0 if self.zeros is None else rows * -(-groups * self.bits // 8)
        return packed + packed_zeros + self.scales.numel() * self.scales.element_size()

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.n_bytes / max(self.q.numel(), 1)

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The matrix [rows, columns], computed in float32 with one rounding for each value, then cast to `dtype`."""
        columns = self.q.shape[1]
        whole = self.q.float() if self.zeros is None else self.q.float() - self._spread(self.zeros.float(), columns)
        return (whole * self._spread(self.scales.float(), columns)).to(dtype)

    def to(self, device: torch.device | str) -> "QuantizedWeight":
        zeros = None if self.zeros is None else self.zeros.to(device)
        return replace(self, q=self.q.to(device), scales=self.scales.to(device), zeros=zeros)

    def _spread(self, per_group: Tensor, columns: int) -> Tensor:
        """[rows, groups] -> [rows, columns]: each group's value at each of its columns."""
        return per_group.repeat_interleave(self.group_size, dim=1)[:, :columns]
