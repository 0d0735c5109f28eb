"""Products with a matrix of int8 or int4 codes: the same two calls as for a float matrix, which is never made."""

from __future__ import annotations

from torch import Tensor

from reference_impl.kernels import reference
from reference_impl.kernels.backends import pick
from reference_impl.kernels.packed import PackedWeight


def quantized_linear(
    x: Tensor, weight: PackedWeight, bias: Tensor | None = None, *, backend: str | None = None
) -> Tensor:
    """x [n, in] times the matrix [out, in] transposed, plus bias [out] -> [n, out] in x's dtype.

    On a CPU the kernel rounds each row of x to 16 bits. ValueError if the shapes do not fit
    each other, or `backend` cannot take this input.
    """
    _check(x, weight, bias, backend)
    implementation = pick(x, weight.scales, backend)
    if hasattr(implementation, "takes_quantized") and implementation.takes_quantized(x, None, None, weight):
        return implementation.quantized_linear(x, weight, bias)[1]
    _refuse(x, weight, backend)
    return reference.quantized_linear(x, weight, bias)


def quantized_norm_linear(
    x: Tensor,
    delta: Tensor | None,
    norm: Tensor,
    eps: float,
    weight: PackedWeight,
    bias: Tensor | None = None,
    *,
    gated: bool = False,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `norm_linear`, with such a matrix."""
    from reference_impl.kernels import add_rms_norm, silu_mul

    _check(x, weight, bias, backend)
    implementation = pick(x, weight.scales, backend)
    if getattr(implementation, "FUSES_NORM", False) and implementation.takes_quantized(x, delta, norm, weight):
        return implementation.quantized_linear(x, weight, bias, delta, norm, eps, gated)
    sums, rows = add_rms_norm(x, delta, norm, eps, backend=backend)
    out = quantized_linear(rows, weight, bias, backend=backend)
    return sums, silu_mul(out, backend=backend) if gated else out


def _check(x: Tensor, weight: PackedWeight, bias: Tensor | None, backend: str | None) -> None:
    if x.dim() != 2 or x.shape[1] != weight.columns:
        raise ValueError(f"quantized_linear: x {list(x.shape)} does not fit weight {list(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"quantized_linear: bias {list(bias.shape)} does not fit weight {list(weight.shape)}")


def _refuse(x: Tensor, weight: PackedWeight, backend: str | None) -> None:
    if backend not in (None, "torch"):
        raise ValueError(
            f"quantized_linear: kernel backend {backend!r} does not take {list(x.shape)} {x.dtype} on {x.device} with "
            f"{weight.bits}-bit {list(weight.shape)} on {weight.device}"
        )
