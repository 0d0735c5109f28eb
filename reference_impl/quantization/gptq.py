"""GPTQ: round one column after another, and let the columns still to come make up for the error.

A layer computes x Wᵀ, so what counts is not |W - Ŵ| but the error of its outputs, tr((W - Ŵ) H (W - Ŵ)ᵀ), where the
Hessian H is the sum of x xᵀ over calibration inputs x. The best repair for rounding column i by e adds -e H⁻¹[i, j] /
H⁻¹[i, i] to every later column j. The inverses of all the shrinking H are the rows of one Cholesky factor of H⁻¹.
Frantar et al. 2023, "GPTQ", algorithm 1; the repair is that of Optimal Brain Surgeon (Hassibi and Stork 1993).
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.quantization.rounding import GroupSize, check, choose_grid, group_width
from reference_impl.quantization.weight import QuantizedWeight

_CHUNK = 2**22  # weights held in float64 at a time, as rows do not depend on each other


def gptq(
    weight: Tensor,
    hessian: Tensor,
    bits: int,
    group_size: GroupSize,
    *,
    symmetric: bool = True,
    scale_dtype: torch.dtype = torch.float32,
    damping: float = 0.01,
    act_order: bool = False,
    block: int = 128,
) -> QuantizedWeight:
    """Quantizes weight [rows, columns] for inputs with `hessian` [columns, columns]; grids and errors as in `quantize`.

    A group's grid is chosen when its first column is reached, from its columns *as updated by then*. So the result does
    not depend on `block`, the number of columns after which the updates are applied to all the rest. Only the shape of
    H matters, not its scale.

    damping: this share of H's mean diagonal is added to its diagonal. It makes H positive definite with fewer samples
    than columns, and makes inputs that never occurred harmless.

    act_order: the columns with the largest inputs come first, while the others can still repair them. Groups stay
    together, ordered by their mean input, so inference needs no permutation.

    Arithmetic is float64. |w - ŵ| <= scale/2 holds only for the *updated* weights: single weights move further, the
    outputs less. ValueError as in `quantize`, and for a Hessian of another shape, with NaN or infinity, or that damping
    does not make positive definite.
    """
    check(weight, bits, scale_dtype)
    if group_size == "tensor":
        raise ValueError("GPTQ chooses a row's grids on the way: group size must be a number or None")
    columns = weight.shape[1]
    width = group_width(group_size, columns)
    if tuple(hessian.shape) != (columns, columns):
        raise ValueError(
            f"weight has {columns} columns: expected a Hessian {(columns, columns)}, got {tuple(hessian.shape)}"
        )
    if not bool(hessian.isfinite().all()):
        raise ValueError("the Hessian holds NaN or infinity: look at the calibration inputs")
    if block < 1:
        raise ValueError(f"block must be at least 1 column, got {block}")
    groups = [torch.arange(start, min(start + width, columns)) for start in range(0, columns, width)]
    if act_order:
        importance = hessian.diagonal().double().cpu()
        groups.sort(key=lambda group: -float(importance[group].mean()))
        groups = [group[importance[group].argsort(descending=True, stable=True)] for group in groups]
    order = torch.cat(groups).to(weight.device) if groups else torch.arange(0)
    upper = inverse_factor(hessian.double()[order][:, order], damping)

    done = []
    for part in weight.split(max(_CHUNK // max(columns, 1), 1)):
        done.append(
            _columns(part.double()[:, order].T, upper, [len(g) for g in groups], bits, symmetric, scale_dtype, block)
        )
    q = torch.cat([d[0] for d in done])[:, order.argsort()]
    place = torch.tensor([int(group.min()) // width for group in groups]).argsort().to(weight.device)
    scales = torch.cat([d[1] for d in done])[:, place]
    zeros = None if symmetric else torch.cat([d[2] for d in done])[:, place]
    return QuantizedWeight(q, scales.contiguous(), zeros, bits, width)


def inverse_factor(hessian: Tensor, damping: float) -> Tensor:
    """The upper triangular U with Uᵀ U = (H + damping · mean(diag H) · I)⁻¹. An H of zeros counts as I."""
    mean = hessian.diagonal().mean()
    if not mean > 0:
        hessian, mean = torch.eye(len(hessian), dtype=hessian.dtype, device=hessian.device), torch.ones_like(mean)
    damped = hessian + damping * mean * torch.eye(len(hessian), dtype=hessian.dtype, device=hessian.device)
    lower, failed = torch.linalg.cholesky_ex(damped)
    if failed:
        raise ValueError(f"the Hessian is not positive definite with damping {damping:g}: take more samples or damping")
    return torch.linalg.cholesky(torch.cholesky_inverse(lower), upper=True)


def output_error(weight: Tensor, restored: Tensor, hessian: Tensor) -> float:
    """Relative error of a layer's outputs, root mean square: the root of tr((W - Ŵ) H (W - Ŵ)ᵀ) / tr(W H Wᵀ)."""
    difference, weight, hessian = (weight - restored).double(), weight.double(), hessian.double()
    return float(((difference @ hessian) * difference).sum() / ((weight @ hessian) * weight).sum()) ** 0.5


def _columns(
    weight: Tensor,
    upper: Tensor,
    group_lengths: list[int],
    bits: int,
    symmetric: bool,
    scale_dtype: torch.dtype,
    block: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """weight float64 [columns, rows], in the order to go -> q int8 [rows, columns], scales and zeros [rows, groups]."""
    columns, rows = weight.shape
    weight = weight.contiguous().clone()  # so that a column of the matrix is a contiguous row
    q = torch.empty(columns, rows, dtype=torch.int8, device=weight.device)
    ends = torch.tensor(group_lengths).cumsum(0).tolist()
    starts = dict(zip([0, *ends[:-1]], ends, strict=True)) if ends else {}
    scales, zeros = [], []
    for first in range(0, columns, block):
        last = min(first + block, columns)
        errors = torch.zeros(last - first, rows, dtype=weight.dtype, device=weight.device)
        for i in range(first, last):
            so_far = errors[: i - first]  # errors of this block's columns; `weight` has those of earlier blocks already
            if i in starts:
                group = weight[i : starts[i]] - upper[first:i, i : starts[i]].T @ so_far
                grid = choose_grid(group.amin(0), group.amax(0), bits, symmetric, scale_dtype)
                scales.append(grid.scales)
                zeros.append(torch.zeros_like(grid.scales) if grid.zeros is None else grid.zeros)
            column = weight[i] - upper[first:i, i] @ so_far
            rounded = grid.q(column)
            q[i] = rounded
            errors[i - first] = (column - grid.values(rounded)) / upper[i, i]
        weight[last:] -= upper[first:last, last:].T @ errors
    if not scales:
        nothing = torch.empty(rows, 0, dtype=scale_dtype)
        return q.T, nothing, nothing.to(torch.int8)
    return q.T, torch.stack(scales, 1), torch.stack(zeros, 1).to(torch.int8)
