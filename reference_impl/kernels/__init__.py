"""The engine's inner loops behind one interface: the matrix product, attention over blocks, and what lies between.

Each has a plain PyTorch twin (`reference`), a CPU version in Numba (`cpu`) and a GPU version (`triton`). The dispatcher
picks by device, dtype and shape and falls back on the twin, so that the engine calls one name everywhere and computes
the same whatever is installed. `LLM_COURSE_KERNELS=torch` in the environment turns the fast versions off; `backend=`
("torch", "cpu" or "triton") picks one for a single call and refuses what it cannot do.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

from reference_impl.kernels import reference

__all__ = ["linear", "paged_attention", "rms_norm", "rotate", "silu_mul", "store_kv"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, backend: str | None = None) -> Tensor:
    """x [n, in] times weight [out, in] transposed, plus bias [out] -> [n, out] in x's dtype.

    ValueError if the shapes do not fit each other, or `backend` cannot take this input.
    """
    if x.dim() != 2 or weight.dim() != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"linear: x {list(x.shape)} does not fit weight {list(weight.shape)}: [n, in] and [out, in]")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear: bias {list(bias.shape)} does not fit weight {list(weight.shape)}")
    implementation = _pick(x, weight, backend)
    if implementation is not reference and implementation.takes_linear(x, weight):
        return implementation.linear(x, weight, bias)
    return _refuse_if_asked(backend, "linear", x, weight).linear(x, weight, bias)


def paged_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
    *,
    backend: str | None = None,
) -> Tensor:
    """Causal grouped-query attention of each sequence's newest tokens over its own blocks.

    q [n_tokens, n_heads, head_dim], sequences packed one after another; k_cache and v_cache [n_blocks, n_kv_heads,
    block_size, head_dim]; int32 block_tables [n_seqs, max_blocks], query_lens and context_lens [n_seqs], the context
    including the new tokens. Returns a tensor like q. What lies in a block behind a sequence's length is never used.
    ValueError if the shapes do not fit each other.
    """
    n_heads, head_dim = q.shape[-2:]
    if q.dim() != 3 or k_cache.dim() != 4 or k_cache.shape != v_cache.shape or k_cache.shape[3] != head_dim:
        raise ValueError(
            f"paged_attention: q {list(q.shape)}, k_cache {list(k_cache.shape)} and v_cache {list(v_cache.shape)} "
            "do not fit each other: [tokens, heads, head_dim] and twice [blocks, kv_heads, block_size, head_dim]"
        )
    if n_heads % k_cache.shape[1]:
        raise ValueError(f"paged_attention: {n_heads} heads cannot share {k_cache.shape[1]} KV heads evenly")
    if block_tables.dim() != 2 or not len(block_tables) == len(query_lens) == len(context_lens):
        raise ValueError(
            f"paged_attention: {list(block_tables.shape)} block tables, {len(query_lens)} query lengths and "
            f"{len(context_lens)} context lengths are not of the same sequences"
        )
    implementation = _pick(q, k_cache, backend)
    arguments = (q, k_cache, v_cache, block_tables, query_lens, context_lens, scale)
    if implementation is not reference and implementation.takes_attention(*arguments):
        return implementation.paged_attention(*arguments)
    return _refuse_if_asked(backend, "paged_attention", q, k_cache).paged_attention(*arguments)


def store_kv(
    k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor, *, backend: str | None = None
) -> None:
    """Writes k and v [n_tokens, n_kv_heads, head_dim] into the caches [n_blocks, n_kv_heads, block_size, head_dim].

    slots int64 [n_tokens]: block * block_size + place in the block; a negative slot is a padding row that is skipped.
    ValueError if the shapes do not fit each other.
    """
    if k.shape != v.shape or k.shape[1:] != k_cache.shape[1::2] or len(slots) != len(k):
        raise ValueError(
            f"store_kv: k {list(k.shape)}, v {list(v.shape)}, {len(slots)} slots and the cache {list(k_cache.shape)} "
            "do not fit: twice [tokens, kv_heads, head_dim], tokens, [blocks, kv_heads, block_size, head_dim]"
        )
    implementation = _pick(k, k_cache, backend)
    if implementation is not reference and implementation.takes_store(k, k_cache, v_cache, slots):
        implementation.store_kv(k, v, k_cache, v_cache, slots)
    else:
        _refuse_if_asked(backend, "store_kv", k, k_cache).store_kv(k, v, k_cache, v_cache, slots)


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, backend: str | None = None) -> Tensor:
    """x [..., width] divided by its root mean square, times weight [width] -> like x."""
    if weight.shape != x.shape[-1:]:
        raise ValueError(f"rms_norm: weight {list(weight.shape)} does not fit x {list(x.shape)}")
    implementation = _pick(x, weight, backend)
    if implementation is not reference and implementation.takes_rows(x, weight):
        return implementation.rms_norm(x, weight, eps)
    return _refuse_if_asked(backend, "rms_norm", x, weight).rms_norm(x, weight, eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, *, backend: str | None = None) -> Tensor:
    """RoPE: turns each pair (x[i], x[i + head_dim/2]) of x [n, heads, head_dim]; cos and sin [n, 1, head_dim].

    The first half of each sine row carries the rotation's minus sign.
    """
    if x.dim() != 3 or cos.shape != sin.shape or cos.shape != (x.shape[0], 1, x.shape[2]):
        raise ValueError(f"rotate: cos {list(cos.shape)} and sin {list(sin.shape)} do not fit x {list(x.shape)}")
    implementation = _pick(x, cos, backend)
    if implementation is not reference and implementation.takes_rotation(x, cos, sin):
        return implementation.rotate(x, cos, sin)
    return _refuse_if_asked(backend, "rotate", x, cos).rotate(x, cos, sin)


def silu_mul(x: Tensor, *, backend: str | None = None) -> Tensor:
    """x [n, 2 width], gate and up side by side -> silu(gate) * up [n, width]."""
    if x.dim() != 2 or x.shape[1] % 2:
        raise ValueError(f"silu_mul: x {list(x.shape)} does not hold a gate and as much again")
    implementation = _pick(x, x, backend)
    if implementation is not reference and implementation.takes_rows(x):
        return implementation.silu_mul(x)
    return _refuse_if_asked(backend, "silu_mul", x, x).silu_mul(x)


def _pick(x: Tensor, weight: Tensor, backend: str | None) -> ModuleType:
    """The implementation for these tensors' device; the twin where a gradient is wanted, or fast ones are off."""
    if backend is not None:
        return _load(backend, True)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return reference
    return _default_for(x.device.type)


@cache
def _default_for(device_type: str) -> ModuleType:
    wanted = os.environ.get("LLM_COURSE_KERNELS", "auto")
    if wanted not in ("auto", "torch"):
        raise ValueError(f"LLM_COURSE_KERNELS is {wanted!r}; it can be 'auto' or 'torch'")
    names = {"cpu": "cpu", "cuda": "triton"}
    return _load(names[device_type], False) if wanted == "auto" and device_type in names else reference


@cache
def _load(backend: str, required: bool) -> ModuleType:
    """The module of a backend; where it is not installed, the twin, unless it is `required`."""
    if backend == "torch":
        return reference
    if backend not in ("cpu", "triton"):
        raise ValueError(f"unknown kernel backend {backend!r}; known: 'torch', 'cpu', 'triton'")
    try:
        return import_module(f"reference_impl.kernels.{backend}")
    except ImportError as error:
        if required:
            raise ValueError(f"kernel backend {backend!r} is not installed: {error}") from error
        return reference


def _refuse_if_asked(backend: str | None, name: str, x: Tensor, weight: Tensor) -> ModuleType:
    if backend not in (None, "torch"):
        raise ValueError(
            f"{name}: kernel backend {backend!r} does not take {list(x.shape)} {x.dtype} on {x.device} with "
            f"{list(weight.shape)} {weight.dtype} on {weight.device}"
        )
    return reference
