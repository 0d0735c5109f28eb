"""The small steps on a CPU: RMSNorm, RoPE, SiLU times gate, looking up rows of the embedding.

Which inputs the kernels of `cpu_rows` take, and how they are called.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_impl.kernels.cpu.call import SUFFIX, bits, kernel, on_cpu, with_packed_heads

ROWS_ALONE = 16  # fewer rows are done before another thread wakes up


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As `reference.rms_norm`, for float32 rows."""
    out = torch.empty_like(x)
    width = x.shape[-1]
    n = x.numel() // width
    kernel("rms_norm", weight.dtype).run(x, weight, out, n, width, bits(eps), alone=n < ROWS_ALONE)
    return out


def norm_heads(heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float) -> Tensor:
    """As `reference.norm_heads`, for float32 heads; both norms in the same dtype."""
    n, n_all, head_dim = heads.shape
    out = torch.empty_like(heads)
    kernel("norm_heads", q_norm.dtype).run(
        *(heads, q_norm, k_norm.to(q_norm.dtype), out, n, n_heads, n_all, head_dim, bits(eps)), alone=n < ROWS_ALONE
    )
    return out


def takes_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> bool:
    return x.dtype is cos.dtype is sin.dtype is torch.float32 and x.shape[2] % 2 == 0 and on_cpu(x, cos, sin)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As `reference.rotate`, for float32."""
    n, heads, head_dim = x.shape
    x = with_packed_heads(x)
    out = torch.empty(n, heads, head_dim, dtype=torch.float32)
    kernel("rotate", torch.float32).run(x, cos, sin, out, n, heads, head_dim, x.stride(0), alone=n < ROWS_ALONE)
    return out


def silu_mul(x: Tensor) -> Tensor:
    """As `reference.silu_mul`, for float32 rows."""
    n, width = x.shape[0], x.shape[1] // 2
    out = torch.empty(n, width, dtype=torch.float32)
    kernel("silu_mul", torch.float32).run(x, out, n, width, alone=n < ROWS_ALONE)
    return out


def takes_look_up(table: Tensor, index: Tensor) -> bool:
    return table.dtype in SUFFIX and index.dtype is torch.int64 and on_cpu(table, index)


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """As `reference.look_up`, in float32. IndexError for an index outside the table."""
    n, width = len(index), table.shape[1]
    out = torch.empty(n, width, dtype=torch.float32)
    if kernel("look_up", table.dtype).run(table, index, out, n, len(table), width, alone=n < ROWS_ALONE):
        raise IndexError(f"index {index.tolist()} does not fit a table of {len(table)} rows")
    return out
