"""Products on a CPU: a few rows of x times a float, int8 or int4 matrix, with a norm before and a gate behind.

Which inputs the kernels of `cpu_linear` and `cpu_quantized` take, and how they are called.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.kernels.cpu import quantized as cpu_quantized
from reference_impl.kernels.cpu.call import SUFFIX, bits, float32, kernel, on_cpu, takes_rows
from reference_impl.kernels.packed import PackedWeight

MAX_ROWS = 64  # above this many rows of x, torch's packed matrix product is faster (measured: level at 64)


def takes_linear(x: Tensor, weight: Tensor) -> bool:
    """Few rows of half or single precision; many rows are work for torch's packed product."""
    return x.dtype in SUFFIX and weight.dtype in SUFFIX and 0 < x.shape[0] <= MAX_ROWS and on_cpu(x, weight)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `reference.linear`, for float32 or bfloat16; sums in float32."""
    if bias is not None and (bias.dtype not in SUFFIX or not bias.is_contiguous()):
        bias = float32(bias).contiguous()
    out = _multiply(float32(x).contiguous(), weight, bias=bias)
    return out if x.dtype is torch.float32 else out.to(x.dtype)


def takes_norm_linear(x: Tensor, delta: Tensor | None, norm: Tensor, weight: Tensor) -> bool:
    """Few rows in float32; a bfloat16 model computes in it too."""
    rows = (x,) if delta is None else (x, delta)
    return takes_linear(x, weight) and norm.dtype in SUFFIX and on_cpu(norm) and all(takes_rows(r) for r in rows)


def norm_linear(
    x: Tensor, delta: Tensor | None, norm: Tensor, eps: float, weight: Tensor, bias: Tensor | None, gated: bool
) -> tuple[Tensor, Tensor]:
    """As `reference.norm_linear`, in one call."""
    sums = x if delta is None else torch.empty_like(x)
    return sums, _multiply(x, weight, bias, delta, norm, eps, sums, gated)


def _multiply(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    delta: Tensor | None = None,
    norm: Tensor | None = None,
    eps: float = 0.0,
    sums: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    (n, n_in), n_out = x.shape, weight.shape[0] // (2 if gated else 1)
    out = torch.empty(n, n_out, dtype=torch.float32)
    kind = "linear_bf16_pair" if weight.dtype is torch.bfloat16 and n_in % 2 == 0 else "linear"
    kernel(kind, weight.dtype).run(
        *(x, weight, out, n, n_in, n_out, delta, norm, _is_bf16(norm), bits(eps)),
        *(None if delta is None else sums, bias, gated, _share(n_out), _is_bf16(bias)),
    )
    return out


def takes_quantized(x: Tensor, delta: Tensor | None, norm: Tensor | None, weight: PackedWeight) -> bool:
    """Few rows in single precision (or half, where nothing comes before the product)."""
    if norm is not None and not (norm.dtype in SUFFIX and on_cpu(norm) and takes_rows(x)):
        return False
    fits = delta is None or takes_rows(delta)
    return fits and x.dtype in SUFFIX and x.shape[0] > 0 and on_cpu(x, *weight.tensors)


def quantized_linear(
    x: Tensor,
    weight: PackedWeight,
    bias: Tensor | None = None,
    delta: Tensor | None = None,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
) -> tuple[Tensor, Tensor]:
    """(x + delta, as `reference.quantized_linear`), with x rounded to 16 bits (see `cpu_quantized`)."""
    if len(x) > MAX_ROWS:  # so that x stays in the cache
        deltas = [None] * len(x) if delta is None else delta.split(MAX_ROWS)
        rest = (bias, norm, eps, gated)
        parts = [_quantized(rows, weight, d, *rest) for rows, d in zip(x.split(MAX_ROWS), deltas, strict=False)]
        return torch.cat([sums for sums, _ in parts]), torch.cat([out for _, out in parts])
    return _quantized(x, weight, delta, bias, norm, eps, gated)


def _quantized(
    x: Tensor,
    weight: PackedWeight,
    delta: Tensor | None,
    bias: Tensor | None,
    norm: Tensor | None,
    eps: float,
    gated: bool,
) -> tuple[Tensor, Tensor]:
    rows = float32(x).contiguous()
    (n, n_in), n_out = x.shape, weight.shape[0] // (2 if gated else 1)
    out = torch.empty(n, n_out, dtype=torch.float32)
    sums = x if delta is None else torch.empty_like(x)
    usual = f"_{weight.width}" if weight.width in cpu_quantized.USUAL else ""
    kernel(f"quantized_int{weight.bits}{usual}", torch.float32).run(
        *(rows, weight.codes, out, n, n_in, n_out, delta, norm, _is_bf16(norm), bits(eps)),
        *(None if delta is None else sums, bias, gated, _share(n_out), _is_bf16(bias)),
        *(weight.scales, weight.shifts, weight.group_size, weight.width, weight.stored, weight.scales.shape[1]),
    )
    return sums, out if x.dtype is torch.float32 else out.to(x.dtype)


def _is_bf16(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype is torch.bfloat16


def _share(n_out: int) -> int:
    """Weight rows that a thread takes at a time: two runs each, so that none waits long for the last.

    The longer a run, the faster it is read: with 256 rows instead of 64 int8 took 0.8 of the time.
    """
    return max(16, min(512, -(-n_out // (2 * torch.get_num_threads()))))
