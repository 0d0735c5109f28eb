"""Triton kernel for decode: one or a few rows of x times an int8 or int4 matrix that is never widened in memory.

A program walks along some weight rows. It loads codes as they are stored, converts them in registers, multiplies them
by x, and multiplies each group's sum by its scale. One row of x is multiplied by plain arithmetic. More rows, padded to
sixteen, go to the tensor cores in x's own 16-bit dtype, which represents codes exactly (float32 stays float32). Many
rows (a prefill) are not for this kernel: there arithmetic counts, not bytes.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from reference_impl.kernels.gpu.attention import INTERPRETED
from reference_impl.kernels.packed import PackedWeight

MAX_ROWS = 16  # most rows of x
WEIGHT_ROWS = 16  # rows of the matrix that a program takes


def linear(x: Tensor, weight: PackedWeight, bias: Tensor | None) -> Tensor:
    """As `kernels.linear`, for up to MAX_ROWS rows; sums in float32."""
    n, columns = x.shape
    n_out, groups = weight.scales.shape
    out = torch.empty(n, n_out, dtype=x.dtype, device=x.device)
    step = min(128, weight.width & -weight.width)  # the largest power of two that divides a group
    _linear[(triton.cdiv(n_out, WEIGHT_ROWS),)](
        *(x, weight.codes, weight.scales, weight.scales if weight.shifts is None else weight.shifts),
        *(x if bias is None else bias, out, n, n_out, columns, groups, weight.stored, weight.group_size, weight.width),
        X_ROWS=1 if n == 1 else MAX_ROWS,
        INT4=weight.bits == 4,
        SHIFTED=weight.shifts is not None,
        BIASED=bias is not None,
        WEIGHT_ROWS=WEIGHT_ROWS,
        STEP=step,
        WIDEN=INTERPRETED,
    )
    return out


@triton.jit(do_not_specialize=["n"])
def _linear(  # type: ignore[no-untyped-def]
    x,
    codes,
    scales,
    shifts,
    bias,
    out,
    n,
    n_out,
    columns,
    groups,
    stored,
    group_size,
    width,
    X_ROWS: tl.constexpr,
    INT4: tl.constexpr,
    SHIFTED: tl.constexpr,
    BIASED: tl.constexpr,
    WEIGHT_ROWS: tl.constexpr,
    STEP: tl.constexpr,
    WIDEN: tl.constexpr,
):
    rows = tl.program_id(0) * WEIGHT_ROWS + tl.arange(0, WEIGHT_ROWS)
    inside = rows < n_out
    row = rows.to(tl.int64)
    x_rows = tl.arange(0, X_ROWS)
    total = tl.zeros((WEIGHT_ROWS, X_ROWS), tl.float32)
    for start in range(0, stored, STEP):
        group = start // width
        scale = tl.load(scales + row * groups + group, mask=inside, other=0.0)
        if INT4:  # in a block of 16 bytes the lower halves are 16 codes, the upper halves the next 16
            place = tl.arange(0, STEP // 2)
            byte = tl.load(
                codes + row[:, None] * (stored // 2) + start // 2 + place[None, :],
                mask=inside[:, None] & (start // 2 + place < stored // 2)[None, :],
                other=0,
            ).to(tl.int32)
            first = start + place // 16 * 32 + place % 16
            low = (((byte & 15) ^ 8) - 8).to(tl.float32)
            high = (((byte >> 4) ^ 8) - 8).to(tl.float32)
            part, sums = _products(x, low, first, group, x_rows, n, columns, group_size, width, X_ROWS, WIDEN)
            last = first + 16
            more, more_sums = _products(x, high, last, group, x_rows, n, columns, group_size, width, X_ROWS, WIDEN)
            part += more
            sums += more_sums
        else:
            place = start + tl.arange(0, STEP)
            code = tl.load(
                codes + row[:, None] * stored + place[None, :],
                mask=inside[:, None] & (place < stored)[None, :],
                other=0,
            ).to(tl.float32)
            part, sums = _products(x, code, place, group, x_rows, n, columns, group_size, width, X_ROWS, WIDEN)
        total += part * scale[:, None]
        if SHIFTED:
            shift = tl.load(shifts + row * groups + group, mask=inside, other=0.0)
            total -= shift[:, None] * sums[None, :]
    if BIASED:
        total += tl.load(bias + rows, mask=inside, other=0.0).to(tl.float32)[:, None]
    target = out + x_rows[None, :] * n_out + rows[:, None]
    tl.store(target, total.to(out.dtype.element_ty), mask=inside[:, None] & (x_rows < n)[None, :])


@triton.jit
def _products(  # type: ignore[no-untyped-def]
    x, code, place, group, x_rows, n, columns, group_size, width, X_ROWS: tl.constexpr, WIDEN: tl.constexpr
):
    """(codes [weight rows, step] times the values of x at these places, the sums of those values)."""
    inside_group = place - group * width
    column = group * group_size + inside_group
    real = (inside_group < group_size) & (column < columns)
    values = tl.load(
        x + x_rows[:, None] * columns + column[None, :], mask=(x_rows < n)[:, None] & real[None, :], other=0.0
    )
    sums = tl.sum(values.to(tl.float32), 1)
    if X_ROWS == 1:
        part = tl.sum(code * values.to(tl.float32), 1)[:, None]
    elif WIDEN:  # the interpreter would multiply bfloat16 as integers
        part = tl.dot(code, tl.trans(values.to(tl.float32)), input_precision="ieee")
    else:
        part = tl.dot(code.to(values.dtype), tl.trans(values), input_precision="ieee")
    return part, sums
