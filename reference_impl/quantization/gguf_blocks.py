"""GGUF's block formats, byte for byte as they are in a file on a learner's disk.

A block is 32 weights of a row after a 16-bit scale. Three things differ from `rounding`. Halves are rounded away from
zero (Q8_0) or up (Q4_0, Q4_1). q is computed with the scale *before* it is rounded to float16. Q4_0's scale has the
sign of its largest weight, which thereby gets the 16th level. Q4_K and Q6_K, blocks of 256 with scales of scales, are
read by the `gguf` package. Layouts: ggml's ggml-common.h and ggml-quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

BLOCK = 32
BITS_PER_WEIGHT = {"Q8_0": 8.5, "Q4_0": 4.5, "Q4_1": 5.0, "Q4_K": 4.5, "Q6_K": 6.5625}


def write(weight: Floats, kind: str, underflow: str = "refuse") -> Bytes:
    """weight float32 [..., columns] -> uint8 [..., bytes of a row], for kind "Q8_0", "Q4_0" or "Q4_1".

    Q8_0: d = max|w| / 127, q = w · (1/d) to the nearest integer, halves away from zero; 2 + 32 bytes.
    Q4_0: d = (the weight of largest magnitude, with its sign) / -8, q = min(15, floor(w · (1/d) + 8.5)); 2 + 16 bytes.
    Q4_1: d = (max - min) / 15, q = min(15, floor((w - min) · (1/d) + 0.5)); d, min, 2 + 2 + 16 bytes.
    In both, byte j holds value j in its low half and value j + 16 in its high half. All arithmetic is in float32. A
    block of zeros (Q4_1: a constant block) has d = 0 and q = 0 and comes back exactly (Q4_1: as float16 rounds min).
    Raises ValueError: columns that are no multiple of 32 (the formats hold no partial block), NaN or infinity with its
    position, a scale or minimum beyond float16's 65,504, and a block whose scale float16 would round to 0, which turns
    all its weights into 0 (llama.cpp does that without a word; underflow="zero" does it too).
    """
    if kind not in _WRITERS:
        raise ValueError(f"can write {', '.join(_WRITERS)}, not {kind}")
    if underflow not in ("refuse", "zero"):
        raise ValueError(f"underflow must be 'refuse' or 'zero', got {underflow!r}")
    weight = np.asarray(weight, dtype=np.float32)
    if weight.ndim < 1 or weight.shape[-1] % BLOCK:
        raise ValueError(f"{kind} holds whole blocks of {BLOCK} weights a row, got shape {weight.shape}")
    if not np.isfinite(weight).all():
        place = [int(axis) for axis in np.argwhere(~np.isfinite(weight))[0]]
        raise ValueError(f"weight{place} is {weight[tuple(place)]:g}, expected a finite number")
    blocks = weight.reshape(-1, BLOCK)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        header, q = _WRITERS[kind](blocks)
        stored = header.astype(np.float16)  # [blocks, 1], or [blocks, 2] with the minimum
    _refuse(np.isinf(stored).any(axis=1), header, kind, "is beyond float16's largest number, 65,504")
    if underflow == "refuse":
        _refuse((stored[:, 0] == 0) & (header[:, 0] != 0), header, kind, "would become 0 in float16")
    packed = q.view(np.uint8) if kind == "Q8_0" else q[:, : BLOCK // 2] | (q[:, BLOCK // 2 :] << 4)
    return np.concatenate([stored.view(np.uint8), packed], axis=1).reshape(*weight.shape[:-1], -1)


def read(data: Bytes, kind: str) -> Floats:
    """uint8 [..., bytes of a row] -> float32 [..., columns]: q · d, (q - 8) · d, or q · d + min; Q4_K, Q6_K by `gguf`.

    Raises ValueError for an unknown kind and for rows that are no whole number of blocks.
    """
    if kind not in BITS_PER_WEIGHT:
        raise ValueError(f"can read {', '.join(BITS_PER_WEIGHT)}, not {kind}")
    data = np.ascontiguousarray(data, dtype=np.uint8)
    weights_a_block = 256 if kind.endswith("_K") else BLOCK
    block_bytes = int(BITS_PER_WEIGHT[kind] * weights_a_block) // 8
    if data.ndim < 1 or data.shape[-1] % block_bytes:
        raise ValueError(f"{kind} blocks have {block_bytes} bytes, got rows of {data.shape[-1:]} bytes")
    if kind.endswith("_K"):
        return gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind])
    blocks = data.reshape(-1, block_bytes)
    n_header = 4 if kind == "Q4_1" else 2
    header = blocks[:, :n_header].copy().view(np.float16).astype(np.float32)
    body = blocks[:, n_header:]
    if kind == "Q8_0":
        weight = body.view(np.int8) * header
    else:
        q = np.concatenate([body & 15, body >> 4], axis=1).astype(np.float32)
        weight = q * header[:, :1] + header[:, 1:] if kind == "Q4_1" else (q - 8) * header
    return weight.astype(np.float32).reshape(*data.shape[:-1], -1)


def _q8_0(blocks: Floats) -> tuple[Floats, NDArray[np.int8]]:
    d = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    steps = blocks * _inverse(d)
    whole = np.trunc(steps)
    away = whole + np.trunc(2 * (steps - whole))  # |fraction| >= 1/2 moves one step away from zero
    return d, away.astype(np.int8)


def _q4_0(blocks: Floats) -> tuple[Floats, Bytes]:
    at = np.abs(blocks).argmax(axis=1)[:, None]
    d = np.take_along_axis(blocks, at, axis=1) / np.float32(-8)
    return d, _nearest_of_16(blocks * _inverse(d) + np.float32(8.5))


def _q4_1(blocks: Floats) -> tuple[Floats, Bytes]:
    low = blocks.min(axis=1, keepdims=True)
    d = (blocks.max(axis=1, keepdims=True) - low) / np.float32(15)
    return np.concatenate([d, low], axis=1), _nearest_of_16((blocks - low) * _inverse(d) + np.float32(0.5))


_WRITERS: dict[str, Callable[[Floats], tuple[Floats, NDArray]]] = {"Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_1": _q4_1}


def _inverse(d: Floats) -> Floats:
    """1/d, and 0 if d is 0 or too small to have an inverse (float16 makes such a d 0 in any case)."""
    inverse = np.float32(1) / d
    return np.where(np.isfinite(inverse), inverse, np.float32(0))


def _nearest_of_16(raised: Floats) -> Bytes:
    return np.trunc(raised).astype(np.uint8).clip(0, 15)


def _refuse(bad: Any, header: Floats, kind: str, why: str) -> None:
    if bad.any():
        block = int(np.argmax(bad))
        raise ValueError(f"{kind} block {block}: its scale or minimum ({header[block].max():.3g}) {why}")
