"""The engine's inner loops behind one interface: the matrix product, attention over blocks, and what lies between.

The functions here check shapes and pick a backend: plain PyTorch (`reference`), Numba on a CPU (`cpu`) or Triton on a
GPU (`gpu`). They pick by device, and fall back on plain PyTorch for inputs that a backend declines, so the engine calls
one name everywhere and computes the same whatever is installed. `LLM_COURSE_KERNELS=torch` in the environment turns the
fast backends off; `backend=` ("torch", "cpu" or "triton") picks one for a single call, and raises ValueError for inputs
that it does not take.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

import torch
from torch import Tensor

from reference_impl.kernels.backend import Backend, Matrix
from reference_impl.kernels.packed import PackedWeight, pack
from reference_impl.kernels.paged import PagedKV
from reference_impl.kernels.reference import REFERENCE, Reference

__all__ = [
    "Matrix",
    "PackedWeight",
    "PagedKV",
    "add_rms_norm",
    "linear",
    "look_up",
    "norm_heads",
    "norm_linear",
    "pack",
    "paged_attention",
    "rms_norm",
    "rotate",
    "rotated_attention",
    "silu_mul",
    "store_kv",
]

_MODULES = {"cpu": "reference_impl.kernels.cpu", "triton": "reference_impl.kernels.gpu"}
_OF_DEVICE = {"cpu": "cpu", "cuda": "triton"}


def linear(x: Tensor, weight: Matrix, bias: Tensor | None = None, *, backend: str | None = None) -> Tensor:
    """x [n, in] times weight [out, in] transposed, plus bias [out] -> [n, out] in x's dtype.

    The weight may be a matrix of int8 or int4 codes, which is never widened as a whole; on a CPU each row of x is then
    rounded to 16 bits. ValueError if the shapes do not fit each other.
    """
    if x.dim() != 2 or len(weight.shape) != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"linear: x {list(x.shape)} does not fit weight {list(weight.shape)}: [n, in] and [out, in]")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear: bias {list(bias.shape)} does not fit weight {list(weight.shape)}")
    out = _pick(backend, x, weight).linear(x, weight, bias)
    return _fallback("linear", backend, x, weight).linear(x, weight, bias) if out is None else out


def norm_linear(
    x: Tensor,
    delta: Tensor | None,
    norm: Tensor,
    eps: float,
    weight: Matrix,
    bias: Tensor | None = None,
    *,
    gated: bool = False,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Adds delta to the residual stream x [n, in], normalises the sum, and multiplies it by a matrix of the decoder.

    Returns (x + delta [n, in], linear(rms_norm(x + delta), weight, bias) [n, out]). `gated` multiplies silu of the
    first half of the outputs by the second half: [n, out / 2]. It is one kernel if the backend has one, else its parts.
    """
    both = _pick(backend, x, weight).norm_linear(x, delta, norm, eps, weight, bias, gated)
    if both is not None:
        return both
    sums, rows = add_rms_norm(x, delta, norm, eps, backend=backend)
    float_on_gpu = backend == "triton" and isinstance(weight, Tensor)  # cuBLAS multiplies those
    out = linear(rows, weight, bias, backend=None if float_on_gpu else backend)
    return sums, silu_mul(out, backend=backend) if gated else out


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, backend: str | None = None) -> Tensor:
    """x [..., width] divided by its root mean square, times weight [width] -> like x."""
    if weight.shape != x.shape[-1:]:
        raise ValueError(f"rms_norm: weight {list(weight.shape)} does not fit x {list(x.shape)}")
    out = _pick(backend, x, weight).rms_norm(x, weight, eps)
    return _fallback("rms_norm", backend, x, weight).rms_norm(x, weight, eps) if out is None else out


def add_rms_norm(
    x: Tensor, delta: Tensor | None, weight: Tensor, eps: float, *, backend: str | None = None
) -> tuple[Tensor, Tensor]:
    """(x + delta, rms_norm of it), both [n, width] like x. Without delta the sum is x."""
    if delta is None:
        return x, rms_norm(x, weight, eps, backend=backend)
    if x.shape != delta.shape or weight.shape != x.shape[-1:]:
        raise ValueError(f"add_rms_norm: x {list(x.shape)}, delta {list(delta.shape)}, weight {list(weight.shape)}")
    both = _pick(backend, x, weight).add_rms_norm(x, delta, weight, eps)
    if both is not None:
        return both
    sums = x + delta
    return sums, rms_norm(sums, weight, eps, backend=backend)


def norm_heads(
    heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float, *, backend: str | None = None
) -> Tensor:
    """Normalises queries and keys in heads [n, n_heads + 2 n_kv_heads, head_dim], and copies the values beside them."""
    if heads.dim() != 3 or not q_norm.shape == k_norm.shape == heads.shape[-1:] or (heads.shape[1] - n_heads) % 2:
        raise ValueError(
            f"norm_heads: {list(heads.shape)} with {n_heads} query heads does not fit {list(q_norm.shape)} and "
            f"{list(k_norm.shape)}"
        )
    out = _pick(backend, heads, q_norm).norm_heads(heads, q_norm, k_norm, n_heads, eps)
    if out is None:
        out = _fallback("norm_heads", backend, heads, q_norm).norm_heads(heads, q_norm, k_norm, n_heads, eps)
    return out


def rotate(x: Tensor, cos: Tensor, sin: Tensor, *, backend: str | None = None) -> Tensor:
    """RoPE: turns each pair (x[i], x[i + head_dim/2]) of x [n, heads, head_dim]; cos and sin [n, 1, head_dim].

    The first half of each sine row carries the rotation's minus sign.
    """
    if x.dim() != 3 or cos.shape != sin.shape or cos.shape != (x.shape[0], 1, x.shape[2]):
        raise ValueError(f"rotate: cos {list(cos.shape)} and sin {list(sin.shape)} do not fit x {list(x.shape)}")
    out = _pick(backend, x, cos).rotate(x, cos, sin)
    return _fallback("rotate", backend, x, cos).rotate(x, cos, sin) if out is None else out


def silu_mul(x: Tensor, *, backend: str | None = None) -> Tensor:
    """silu(gate) * up [n, width], from x [n, 2 width] that holds gate and up side by side."""
    if x.dim() != 2 or x.shape[1] % 2:
        raise ValueError(f"silu_mul: x {list(x.shape)} does not hold a gate and as much again")
    out = _pick(backend, x, x).silu_mul(x)
    return _fallback("silu_mul", backend, x, x).silu_mul(x) if out is None else out


def look_up(table: Tensor, index: Tensor, *, backend: str | None = None) -> Tensor:
    """Rows [n, width] of table [rows, width] at index int64 [n].

    On a CPU bfloat16 rows are returned as float32: such processors compute faster in it, so there bfloat16 only stores.
    """
    out = _pick(backend, table, table).look_up(table, index)
    return REFERENCE.look_up(table, index) if out is None else out


def store_kv(k: Tensor, v: Tensor, kv: PagedKV, layer: int, *, backend: str | None = None) -> None:
    """Writes k and v [n_tokens, n_kv_heads, head_dim] into a layer's blocks, at the slots of `kv`.

    ValueError if the shapes do not fit each other.
    """
    keys = kv.layers[layer][0]
    if k.shape != v.shape or k.shape[1:] != keys.shape[1::2] or len(kv.slots) != len(k):
        raise ValueError(
            f"store_kv: k {list(k.shape)}, v {list(v.shape)}, {len(kv.slots)} slots and the cache {list(keys.shape)} "
            "do not fit: twice [tokens, kv_heads, head_dim], tokens, [blocks, kv_heads, block_size, head_dim]"
        )
    if not _pick(backend, k, keys).store_kv(k, v, kv, layer):
        _fallback("store_kv", backend, k, keys).store_kv(k, v, kv, layer)


def paged_attention(q: Tensor, kv: PagedKV, layer: int, *, backend: str | None = None) -> Tensor:
    """Causal grouped-query attention of each sequence's newest tokens to its own blocks in a layer.

    q [n_tokens, n_heads, head_dim], sequences packed one after another; returns a tensor of the same shape. The new
    tokens' keys and values must be stored already. Places behind a sequence's length are never read. ValueError if the
    shapes do not fit each other.
    """
    keys, values = kv.layers[layer]
    n_heads, head_dim = q.shape[-2:]
    if q.dim() != 3 or keys.dim() != 4 or keys.shape != values.shape or keys.shape[3] != head_dim:
        raise ValueError(
            f"paged_attention: q {list(q.shape)}, keys {list(keys.shape)} and values {list(values.shape)} "
            "do not fit each other: [tokens, heads, head_dim] and twice [blocks, kv_heads, block_size, head_dim]"
        )
    if n_heads % keys.shape[1]:
        raise ValueError(f"paged_attention: {n_heads} heads cannot share {keys.shape[1]} KV heads evenly")
    if kv.block_tables.dim() != 2 or not len(kv.block_tables) == len(kv.query_lens) == len(kv.context_lens):
        raise ValueError(
            f"paged_attention: {list(kv.block_tables.shape)} block tables, {len(kv.query_lens)} query lengths and "
            f"{len(kv.context_lens)} context lengths are not of the same sequences"
        )
    out = _pick(backend, q, keys).paged_attention(q, kv, layer)
    if out is None:
        out = _fallback("paged_attention", backend, q, keys).paged_attention(q, kv, layer)
    return out


def rotated_attention(
    heads: Tensor, n_heads: int, cos: Tensor, sin: Tensor, kv: PagedKV, layer: int, *, backend: str | None = None
) -> Tensor:
    """RoPE on queries and keys, storing of keys and values, and attention, in one kernel if the backend has one.

    heads [n_tokens, n_heads + 2 n_kv_heads, head_dim] holds queries, keys and values -> [n_tokens, n_heads, head_dim].
    The other arguments are those of its parts: `rotate`, `store_kv` and `paged_attention`.
    """
    keys = kv.layers[layer][0]
    n_qk = n_heads + keys.shape[1]
    if heads.dim() != 3 or heads.shape[1] != n_qk + keys.shape[1] or n_heads % keys.shape[1]:
        raise ValueError(f"rotated_attention: heads {list(heads.shape)} do not fit {n_heads} and {list(keys.shape)}")
    out = _pick(backend, heads, keys).rotated_attention(heads, n_heads, cos, sin, kv, layer)
    if out is not None:
        return out
    turned = rotate(heads[:, :n_qk], cos, sin, backend=backend)
    store_kv(turned[:, n_heads:], heads[:, n_qk:], kv, layer, backend=backend)
    return paged_attention(turned[:, :n_heads], kv, layer, backend=backend)


def _pick(backend: str | None, x: Tensor, weight: Matrix) -> Backend:
    """The backend asked for, or that of x's device. Plain PyTorch if a gradient is wanted."""
    if backend is not None:
        return _load(backend, True)
    if torch.is_grad_enabled() and (x.requires_grad or (isinstance(weight, Tensor) and weight.requires_grad)):
        return REFERENCE
    return _default(x.device.type)


@cache
def _default(device_type: str) -> Backend:
    """The backend of a device type."""
    wanted = os.environ.get("LLM_COURSE_KERNELS", "auto")
    if wanted not in ("auto", "torch"):
        raise ValueError(f"LLM_COURSE_KERNELS is {wanted!r}; it can be 'auto' or 'torch'")
    fast = _OF_DEVICE.get(device_type) if wanted == "auto" else None
    return _load(fast, False) if fast else REFERENCE


@cache
def _load(backend: str, required: bool) -> Backend:
    """A backend by name. If it is not installed: ValueError if it is `required`, else plain PyTorch."""
    if backend == REFERENCE.name:
        return REFERENCE
    if backend not in _MODULES:
        raise ValueError(f"unknown kernel backend {backend!r}; known: 'torch', 'cpu', 'triton'")
    try:
        found: Backend = import_module(_MODULES[backend]).BACKEND
    except ImportError as error:
        if required:
            raise ValueError(f"kernel backend {backend!r} is not installed: {error}") from error
        return REFERENCE
    return found


def _fallback(name: str, backend: str | None, x: Tensor, weight: Matrix) -> Reference:
    """Plain PyTorch, for inputs that a backend declined. ValueError if the caller asked for that very backend."""
    if backend not in (None, REFERENCE.name):
        kind = f"{weight.bits}-bit" if isinstance(weight, PackedWeight) else weight.dtype
        raise ValueError(
            f"{name}: kernel backend {backend!r} does not take {list(x.shape)} {x.dtype} on {x.device} with "
            f"{list(weight.shape)} {kind} on {weight.device}"
        )
    return REFERENCE
