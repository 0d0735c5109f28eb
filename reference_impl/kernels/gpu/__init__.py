"""The GPU kernels' front, in Triton: which inputs they take, gathered from where they are.

Attention and the cache are in `triton_attention`, the steps between the matrices in `triton_rows`, int8 and int4
matrices in `triton_quantized`; float matrices are left to cuBLAS. `TRITON_INTERPRET=1`, set before the import, runs the
kernels on CPU tensors, as the tests do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.kernels.gpu import quantized as triton_quantized
from reference_impl.kernels.gpu.attention import INTERPRETED, paged_attention, store_kv
from reference_impl.kernels.gpu.quantized import quantized_linear
from reference_impl.kernels.gpu.rows import add_rms_norm, rms_norm, rotate_and_store, silu_mul
from reference_impl.kernels.packed import PackedWeight

__all__ = [
    "add_rms_norm",
    "paged_attention",
    "quantized_linear",
    "rms_norm",
    "rotated_attention",
    "silu_mul",
    "store_kv",
]

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def takes_linear(x: Tensor, weight: Tensor) -> bool:
    return False


def takes_rows(x: Tensor, *others: Tensor) -> bool:
    """Half or single precision, rows that follow each other."""
    tensors = (x, *others)
    dense = all(t.is_contiguous() and t.dtype in _DTYPES for t in tensors) and x.numel() > 0
    return dense and _reachable(*tensors)


def takes_quantized(x: Tensor, delta: Tensor | None, norm: Tensor | None, weight: PackedWeight) -> bool:
    """A few rows; with many, the codes become floats and cuBLAS multiplies."""
    few = norm is None and 0 < len(x) <= triton_quantized.MAX_ROWS
    return few and x.dtype in _DTYPES and x.is_contiguous() and _reachable(x, *weight.tensors)


def takes_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> bool:
    return False


def takes_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> bool:
    """Half or single precision, at least one sequence, everything on the GPU (or interpreted)."""
    tensors = (q, k_cache, v_cache, block_tables, query_lens, context_lens)
    dense = all(tensor.is_contiguous() for tensor in tensors[1:]) and q.stride(2) == 1
    dtypes = q.dtype in _DTYPES and k_cache.dtype in _DTYPES and v_cache.dtype is k_cache.dtype
    return dense and dtypes and len(query_lens) > 0 and len(q) > 0 and _reachable(*tensors)


def takes_store(k: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> bool:
    contiguous = k_cache.is_contiguous() and v_cache.is_contiguous()
    return contiguous and k_cache.dtype in _DTYPES and len(k) > 0 and _reachable(k, k_cache, v_cache, slots)


def takes_rotated_attention(
    heads: Tensor,
    cos: Tensor,
    sin: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
) -> bool:
    whole = takes_rows(heads, cos, sin) and heads.shape[2] % 2 == 0
    return (
        whole
        and takes_store(heads, k_cache, v_cache, slots)
        and takes_attention(heads, k_cache, v_cache, block_tables, query_lens, context_lens, 1.0)
    )


def rotated_attention(
    heads: Tensor,
    n_heads: int,
    cos: Tensor,
    sin: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """As `reference.rotated_attention`: one kernel that turns and stores, then attention."""
    queries = rotate_and_store(heads, n_heads, cos, sin, k_cache, v_cache, slots)
    return paged_attention(queries, k_cache, v_cache, block_tables, query_lens, context_lens, scale)


def _reachable(*tensors: Tensor) -> bool:
    return INTERPRETED or all(tensor.is_cuda for tensor in tensors)
