"""A linear layer with a quantized matrix. It replaces `Linear` in the model and never makes a float matrix.

A method chose the integers (`QuantizedWeight`), and this layer holds them in the order in which the kernels read them.
On a CPU the kernel rounds activations to 16 bits; on a GPU they stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from reference_impl import kernels
from reference_impl.kernels.packed import PackedWeight
from reference_impl.model.llama import Linear
from reference_impl.quantization.weight import QuantizedWeight


class QuantizedLinear(Linear):
    """x [n, in] -> [n, out] with the matrix of `weight` and `bias` [out], which is not quantized."""

    def __init__(self, weight: QuantizedWeight, bias: Tensor | None = None) -> None:
        nn.Module.__init__(self)  # not Linear's, which makes a float weight
        self.bits, self.group_size = weight.bits, weight.group_size
        self.scale_dtype = weight.scales.dtype
        self.packed: PackedWeight = kernels.pack(weight.q, weight.scales, weight.zeros, weight.bits, weight.group_size)
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(out, in)."""
        return self.packed.shape

    @property
    def matrix(self) -> PackedWeight:
        return self.packed

    def quantized(self) -> QuantizedWeight:
        """The matrix as the method returned it."""
        packed = self.packed
        zeros = None
        if packed.shifts is not None:
            zero_free = torch.where(packed.scales == 0, 1.0, packed.scales)
            zeros = (packed.shifts / zero_free).round().to(torch.int8)
        scales = packed.scales.to(self.scale_dtype)
        return QuantizedWeight(packed.integers(), scales, zeros, self.bits, self.group_size)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Moves the codes with `to(device)` and the like, and keeps their dtypes."""
        packed = self.packed
        device = fn(packed.scales).device
        self.packed = packed if device == packed.device else packed.to(device)
        return super()._apply(fn, recurse)

    def extra_repr(self) -> str:
        rows, columns = self.shape
        return f"{columns} -> {rows}, {self.bits} bits, groups of {self.group_size}"
