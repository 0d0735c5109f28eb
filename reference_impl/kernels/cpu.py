"""The CPU kernels' front: takes tensors apart into addresses and sizes, and says which inputs the kernels can do.

The kernels themselves are in `cpu_linear` and `cpu_attention`, how they run on every core in `threads`. A call costs a
few microseconds beside the kernel, which matters where a decode step makes two hundred.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from reference_impl.kernels import cpu_attention, cpu_linear
from reference_impl.kernels.cpu_attention import OUT_OF_RANGE
from reference_impl.kernels.threads import Kernel, compiled, run

MAX_ROWS = 64  # above this many rows of x, torch's packed matrix product is as fast

_SUFFIX = {torch.float32: "f32", torch.bfloat16: "bf16"}


def takes_linear(x: Tensor, weight: Tensor) -> bool:
    """Few rows of half or single precision; many rows are work for torch's packed product."""
    return x.dtype in _SUFFIX and weight.dtype in _SUFFIX and 0 < x.shape[0] <= MAX_ROWS and _on_cpu(x, weight)


def takes_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    _: float,
) -> bool:
    """Half or single precision, index tensors in int32."""
    indices = (block_tables, query_lens, context_lens)
    return (
        q.dtype in _SUFFIX
        and k_cache.dtype in _SUFFIX
        and v_cache.dtype is k_cache.dtype
        and all(index.dtype is torch.int32 for index in indices)
        and _on_cpu(q, k_cache, v_cache, *indices)
    )


def takes_store(k: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> bool:
    return k_cache.dtype in _SUFFIX and slots.dtype is torch.int64 and _on_cpu(k, k_cache, v_cache, slots)


def _on_cpu(first: Tensor, *memory: Tensor) -> bool:
    return first.is_cpu and all(tensor.is_cpu and tensor.is_contiguous() for tensor in memory)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `reference.linear`, for float32 or bfloat16; sums in float32."""
    rows = x.to(torch.float32).contiguous()
    (n, n_in), n_out = x.shape, weight.shape[0]
    out = rows.new_empty((n, n_out))
    run(_kernel("linear", weight.dtype), rows.data_ptr(), weight.data_ptr(), out.data_ptr(), n, n_in, n_out)
    if bias is not None:
        out += bias
    return out.to(x.dtype)


def paged_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """As `reference.paged_attention`, for float32 or bfloat16. IndexError for a block that is not in the cache."""
    queries = q.to(torch.float32)
    n_tokens, n_heads, head_dim = q.shape
    if queries.stride()[1:] != (head_dim, 1):
        queries = queries.contiguous()
    n_blocks, n_kv_heads, block_size, _ = k_cache.shape
    out = torch.empty((n_tokens, n_heads, head_dim), dtype=torch.float32)
    used = run(
        _kernel("attention", k_cache.dtype),
        *(queries.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(), out.data_ptr()),
        *(block_tables.data_ptr(), query_lens.data_ptr(), context_lens.data_ptr()),
        *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(query_lens)),
        *(block_tables.shape[1], queries.stride(0)),
        *(int(np.float64(scale).view(np.int64)), 0),
    )
    if used[-1] == OUT_OF_RANGE:
        raise IndexError(
            f"lengths {query_lens.tolist()} of contexts {context_lens.tolist()} with tables {block_tables.tolist()} "
            f"do not fit {n_tokens} new tokens in a cache of {n_blocks} blocks of {block_size}"
        )
    return out.to(q.dtype)


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """As `reference.store_kv`. IndexError for a slot beyond the cache."""
    n_tokens, n_kv_heads, head_dim = k.shape
    k, v = (new.to(k_cache.dtype) for new in (k, v))
    if k.stride()[1:] != (head_dim, 1) or v.stride()[1:] != (head_dim, 1):
        k, v = k.contiguous(), v.contiguous()
    n_blocks, _, block_size, _ = k_cache.shape
    used = run(
        _kernel("store", k_cache.dtype),
        *(k.data_ptr(), v.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(), slots.data_ptr()),
        *(n_tokens, n_kv_heads, head_dim, n_blocks, block_size, k.stride(0), v.stride(0), 0),
    )
    if used[-1] == OUT_OF_RANGE:
        raise IndexError(f"slots {slots.tolist()} do not fit a cache of {n_blocks} blocks of {block_size}")


@cache
def _kernel(name: str, dtype: torch.dtype) -> Kernel:
    """The compiled kernel for a weight or cache dtype, made when it is first needed."""
    module = cpu_linear if name == "linear" else cpu_attention
    return compiled(getattr(module, f"{name}_{_SUFFIX[dtype]}"))
