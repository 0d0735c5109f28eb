"""Integers of 2 to 8 bits packed without gaps, without which a "3-bit" weight would save no memory.

Each row is one stream of bits, lowest bit first, in two's complement, and starts on a byte of its own. With 4 bits, the
even column is in the low half of a byte, as in `groupwise.pack_int4`.
"""

from __future__ import annotations

import torch
from torch import Tensor


def pack_bits(q: Tensor, bits: int) -> Tensor:
    """q int8 [rows, n] within -2^(bits-1) ... 2^(bits-1) - 1 -> uint8 [rows, ceil(n * bits / 8)].

    The last byte of a row is padded with 0. ValueError for other shapes, dtypes or bits, and for a value out of range,
    naming the first.
    """
    _check(q, torch.int8, bits, "q")
    half = 2 ** (bits - 1)
    bad = (q < -half) | (q > half - 1)
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        value = int(q[row, column])
        raise ValueError(f"q[{row}, {column}] is {value}, expected a {bits}-bit integer, {-half} to {half - 1}")
    each = torch.arange(bits, device=q.device)
    stream = ((q[..., None].to(torch.int16) >> each) & 1).flatten(1)  # [rows, n * bits]
    stream = torch.nn.functional.pad(stream, (0, -stream.shape[1] % 8)).unflatten(1, (-1, 8))
    return (stream << torch.arange(8, device=q.device)).sum(-1).to(torch.uint8)


def unpack_bits(packed: Tensor, bits: int, n: int) -> Tensor:
    """The `n` integers of each row that `pack_bits` packed: uint8 [rows, ceil(n * bits / 8)] -> int8 [rows, n].

    Raises ValueError where the number of bytes does not belong to `n`.
    """
    _check(packed, torch.uint8, bits, "packed")
    n_bytes = -(-n * bits // 8)
    if n < 0 or packed.shape[1] != n_bytes:
        raise ValueError(f"{n} values of {bits} bits need {n_bytes} bytes a row, got {packed.shape[1]}")
    stream = ((packed[..., None].to(torch.int16) >> torch.arange(8, device=packed.device)) & 1).flatten(1)
    digits = stream[:, : n * bits].unflatten(1, (n, bits)) << torch.arange(bits, device=packed.device)
    value = digits.sum(-1)
    return (value - ((value >> (bits - 1)) << bits)).to(torch.int8)  # the highest bit is the sign


def _check(values: Tensor, dtype: torch.dtype, bits: int, name: str) -> None:
    if values.ndim != 2 or values.dtype != dtype:
        raise ValueError(f"{name} must be {dtype} [rows, n], got {values.dtype} {tuple(values.shape)}")
    if not 2 <= bits <= 8:
        raise ValueError(f"bits must be 2 to 8, got {bits}")
