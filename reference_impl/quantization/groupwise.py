"""Absmax quantization with one scale per group of weights, and two 4-bit integers in a byte.

The largest weight of a group decides its scale, so an outlier spoils only its own group. Rounding is symmetric, to the
nearest integer, ties to even (NumPy's and torch's rule; GGUF's Q8_0 rounds half away from zero). GPTQ (Frantar et al.
2023) and AWQ (Lin et al. 2024) improve on this baseline. Each function takes NumPy arrays or torch tensors and answers
in kind, on the tensor's own device.
"""

import operator
import sys
from types import ModuleType
from typing import Any

import numpy as np

Array = Any  # a numpy.ndarray or a torch.Tensor; both libraries name the operations used here alike
_LARGEST = 3.4e38  # a little below float32's maximum, so that q_max * scale cannot overflow


def quantize_groupwise(weight: Array, group_size: int | None, bits: int = 8) -> tuple[Array, Array]:
    """Quantize each run of `group_size` columns with scale = max|w| / (2^(bits-1) - 1).

    weight [rows, columns] -> q int8 [rows, columns], scales float32 [rows, ceil(columns / group_size)]. The last group
    of a row may be shorter; `group_size=None` makes one group of each row (one scale per output channel). q is the
    nearest integer to weight / scale for the scale as stored, so the error is at most scale / 2; an all-zero group has
    scale 0. Raises ValueError for NaN or infinity (naming the position), for a shape that is not a matrix, for a bad
    group size or number of bits (2 to 8).
    """
    lib, weight = _as_floats(weight, "weight")
    if weight.ndim != 2:
        raise ValueError(f"weight must be [rows, columns], got shape {tuple(weight.shape)}")
    if not 2 <= bits <= 8:
        raise ValueError(f"bits must be 2 to 8, got {bits}")
    _refuse_not_finite(lib, weight)
    q_max = 2 ** (bits - 1) - 1

    columns = weight.shape[1]
    groups = _split(lib, weight, _width(group_size, columns))  # [rows, groups, width]
    largest = lib.amax(lib.abs(groups), axis=-1)  # [rows, groups]
    scales = _scales(lib, largest, q_max)
    # Divide by the scale that will be stored. Where it is 0 all weights are 0, and any divisor gives q = 0.
    divisors = lib.where(scales == 0, 1.0, _cast(scales, lib.float64))
    q = lib.round(groups / divisors[..., None])
    return _cast(_join(q, columns), lib.int8), scales


def dequantize_groupwise(q: Array, scales: Array, group_size: int | None) -> Array:
    """Each q times the scale of its group, in float32 [rows, columns].

    q [rows, columns], scales [rows, ceil(columns / group_size)], as `quantize_groupwise` returns them. Raises
    ValueError where the two shapes do not fit together at this group size.
    """
    lib, q = _as_floats(q, "q")
    if q.ndim != 2:
        raise ValueError(f"q must be [rows, columns], got shape {tuple(q.shape)}")
    scales = lib.asarray(scales, dtype=lib.float64, device=q.device)
    rows, columns = q.shape
    width = _width(group_size, columns)
    expected = (rows, -(-columns // width))
    if tuple(scales.shape) != expected:
        raise ValueError(
            f"q {(rows, columns)} at group size {group_size} needs scales {expected}, got {tuple(scales.shape)}"
        )
    return _cast(_join(_split(lib, q, width) * scales[..., None], columns), lib.float32)


def quantize_per_tensor(weight: Array, bits: int = 8) -> tuple[Array, Array]:
    """One scale for the whole matrix: weight [rows, columns] -> q int8 [rows, columns], scale float32 [1, 1].

    Groups are compared with it. Raises as `quantize_groupwise`.
    """
    lib, weight = _as_floats(weight, "weight")
    _refuse_not_finite(lib, weight)
    q, scale = quantize_groupwise(weight.reshape(1, -1), None, bits)
    return q.reshape(weight.shape), scale


def dequantize_per_tensor(q: Array, scale: Array) -> Array:
    """q [rows, columns], scale [1, 1] -> float32 [rows, columns]."""
    return dequantize_groupwise(q.reshape(1, -1), scale, None).reshape(q.shape)


def pack_int4(q: Array) -> Array:
    """Two integers of -8...7 in a byte: q [..., n] -> uint8 [..., ceil(n / 2)], along the last axis.

    The value at an even index goes into the low half, its successor into the high half, in two's complement; an odd
    count is padded with 0. (GGUF's Q4_0 pairs j with j + 16 instead.) Raises ValueError naming the first value out of
    range.
    """
    lib, values = _as_floats(q, "q")
    if values.ndim == 0:
        raise ValueError("q must have at least one axis")
    in_range = (values >= -8) & (values <= 7) & (lib.round(values) == values)
    _refuse_first(lib, "q", values, ~in_range, "an integer of -8...7")
    halves = _cast(_split(lib, values, 2), lib.int16) & 15
    return _cast(halves[..., 0] | (halves[..., 1] << 4), lib.uint8)


def unpack_int4(packed: Array, n: int) -> Array:
    """The first `n` values of each row that `pack_int4` packed: uint8 [..., ceil(n / 2)] -> int8 [..., n].

    Raises ValueError where `n` and the number of bytes do not belong together, or a value is no byte.
    """
    lib, values = _as_floats(packed, "packed")
    if values.ndim == 0 or n < 0 or values.shape[-1] != (n + 1) // 2:
        raise ValueError(f"{n} values need {(n + 1) // 2} bytes along the last axis, got shape {tuple(values.shape)}")
    in_range = (values >= 0) & (values <= 255) & (lib.round(values) == values)
    _refuse_first(lib, "packed", values, ~in_range, "a byte")
    byte = _cast(values, lib.int16)
    halves = lib.stack([byte & 15, byte >> 4], -1)  # [..., bytes, 2]
    signed = halves - 16 * (halves > 7)
    return _cast(_join(signed, n), lib.int8)


def _as_floats(values: Array, name: str) -> tuple[ModuleType, Array]:
    """The library that `values` belongs to, and the values in float64, where w / scale rounds as the exact quotient."""
    torch = sys.modules.get("torch")  # a caller with a tensor has imported it
    if torch is not None and isinstance(values, torch.Tensor):
        return torch, values.detach().to(torch.float64)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return np, array.astype(np.float64)


def _cast(values: Array, dtype: Any) -> Array:
    return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(dtype)


def _width(group_size: int | None, columns: int) -> int:
    """Columns in a full group; never more than there are, so that a huge group size costs nothing."""
    if group_size is None:
        return max(columns, 1)
    try:
        size = operator.index(group_size)
    except TypeError:
        size = 0
    if size < 1 or isinstance(group_size, bool):
        raise ValueError(f"group size must be a positive integer, got {group_size!r}")
    return min(size, max(columns, 1))


def _split(lib: ModuleType, values: Array, width: int) -> Array:
    """[..., columns] -> [..., groups, width]; the last group is padded with zeros."""
    *leading, columns = values.shape
    groups = -(-columns // width)
    if columns < groups * width:
        padded = lib.zeros((*leading, groups * width), dtype=values.dtype, device=values.device)
        padded[..., :columns] = values
        values = padded
    return values.reshape(*leading, groups, width)


def _join(groups: Array, columns: int) -> Array:
    """[..., groups, width] -> [..., columns], the inverse of `_split`."""
    *leading, count, width = groups.shape
    return groups.reshape(*leading, count * width)[..., :columns]


def _scales(lib: ModuleType, largest: Array, q_max: int) -> Array:
    """float32 scales that take the largest weight of each group to q_max."""
    scales = _cast(largest / q_max, lib.float32)
    # Below float32's normal range rounding down would push q past q_max (or divide by 0): take the next scale up there.
    too_low = largest > (q_max + 0.5) * _cast(scales, lib.float64)
    return lib.where(too_low, lib.nextafter(scales, lib.full_like(scales, float("inf"))), scales)


def _refuse_not_finite(lib: ModuleType, weight: Array) -> None:
    _refuse_first(lib, "weight", weight, ~(lib.abs(weight) <= _LARGEST), "a finite number of float32's range")


def _refuse_first(lib: ModuleType, name: str, values: Array, bad: Array, expected: str) -> None:
    if bad.any():
        position = [int(axis) for axis in lib.argwhere(bad)[0]]
        raise ValueError(f"{name}{position} is {values[tuple(position)].item():g}, expected {expected}")
