"""The GPU backend, in Triton: which inputs its kernels take.

`attention` has attention and the store into the cache, `rows` the steps between the matrices, and `quantized` the
products with int8 and int4 matrices; float matrices are left to cuBLAS. `TRITON_INTERPRET=1`, set before the import,
runs the kernels on CPU tensors, as the tests do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.kernels.backend import Backend, Matrix
from reference_impl.kernels.gpu import attention, quantized, rows
from reference_impl.kernels.packed import PackedWeight
from reference_impl.kernels.paged import PagedKV

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class Triton(Backend):
    """Takes half and single precision."""

    name = "triton"

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor | None) -> Tensor | None:
        """Takes few rows times a matrix of codes. For many rows the codes are widened and cuBLAS multiplies."""
        if not isinstance(weight, PackedWeight) or not 0 < len(x) <= quantized.MAX_ROWS:
            return None
        if x.dtype not in _DTYPES or not x.is_contiguous() or not _reachable(x, *weight.tensors):
            return None
        return quantized.linear(x, weight, bias)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor | None:
        return rows.rms_norm(x, weight, eps) if _takes_rows(x, weight) else None

    def add_rms_norm(self, x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor] | None:
        return rows.add_rms_norm(x, delta, weight, eps) if _takes_rows(x, delta, weight) else None

    def silu_mul(self, x: Tensor) -> Tensor | None:
        return rows.silu_mul(x) if _takes_rows(x) else None

    def store_kv(self, k: Tensor, v: Tensor, kv: PagedKV, layer: int) -> bool:
        if not _takes_store(k, kv, layer):
            return False
        attention.store_kv(k, v, kv, layer)
        return True

    def paged_attention(self, q: Tensor, kv: PagedKV, layer: int) -> Tensor | None:
        return attention.paged_attention(q, kv, layer) if _takes_attention(q, kv, layer) else None

    def rotated_attention(
        self, heads: Tensor, n_heads: int, cos: Tensor, sin: Tensor, kv: PagedKV, layer: int
    ) -> Tensor | None:
        """One kernel for RoPE and the store, then attention."""
        if not (_takes_rows(heads, cos, sin) and heads.shape[2] % 2 == 0):
            return None
        if not (_takes_store(heads, kv, layer) and _takes_attention(heads, kv, layer)):
            return None
        queries = rows.rotate_and_store(heads, n_heads, cos, sin, kv, layer)
        return attention.paged_attention(queries, kv, layer)


def _takes_rows(x: Tensor, *others: Tensor) -> bool:
    """Whether the rows are contiguous."""
    tensors = (x, *others)
    dense = all(t.is_contiguous() and t.dtype in _DTYPES for t in tensors) and x.numel() > 0
    return dense and _reachable(*tensors)


def _takes_store(k: Tensor, kv: PagedKV, layer: int) -> bool:
    keys, values = kv.layers[layer]
    contiguous = keys.is_contiguous() and values.is_contiguous()
    return contiguous and keys.dtype in _DTYPES and len(k) > 0 and _reachable(k, keys, values, kv.slots)


def _takes_attention(q: Tensor, kv: PagedKV, layer: int) -> bool:
    """Whether the inputs fit, with at least one sequence."""
    keys, values = kv.layers[layer]
    tensors = (keys, values, kv.block_tables, kv.query_lens, kv.context_lens)
    dense = all(tensor.is_contiguous() for tensor in tensors) and q.stride(2) == 1
    dtypes = q.dtype in _DTYPES and keys.dtype in _DTYPES and values.dtype is keys.dtype
    return dense and dtypes and len(kv.query_lens) > 0 and len(q) > 0 and _reachable(q, *tensors)


def _reachable(*tensors: Tensor) -> bool:
    """Whether all tensors are on the GPU, or Triton interprets."""
    return attention.INTERPRETED or all(tensor.is_cuda for tensor in tensors)


BACKEND = Triton()
