"""Triton kernels for the small steps between the matrices; a program takes one row or head.

In plain PyTorch a layer has some fifteen such steps, and each one reads and writes its rows and costs a launch. Fused
there are four, each one pass over memory: residual and RMSNorm (twice), RoPE with the store into the cache, and SiLU
times gate. Arithmetic is float32, rounded once at the end.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from reference_impl.kernels.paged import PagedKV


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As `kernels.rms_norm`, for contiguous rows."""
    out = torch.empty_like(x)
    n = x.numel() // x.shape[-1]
    _launch_norm(x, x, weight, x, out, n, eps, add=False)
    return out


def add_rms_norm(x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """As `kernels.add_rms_norm`, in one pass."""
    sums, out = torch.empty_like(x), torch.empty_like(x)
    _launch_norm(x, delta, weight, sums, out, len(x), eps, add=True)
    return sums, out


def _launch_norm(
    x: Tensor, delta: Tensor, weight: Tensor, sums: Tensor, out: Tensor, n: int, eps: float, add: bool
) -> None:
    width = x.shape[-1]
    _norm[(n,)](x, delta, weight, sums, out, eps, width, ADD=add, BLOCK=triton.next_power_of_2(width))


def silu_mul(x: Tensor) -> Tensor:
    """As `kernels.silu_mul`."""
    n, width = x.shape[0], x.shape[1] // 2
    out = torch.empty(n, width, dtype=x.dtype, device=x.device)
    block = min(1024, triton.next_power_of_2(width))
    _silu_mul[(n, triton.cdiv(width, block))](x, out, width, BLOCK=block)
    return out


def rotate_and_store(heads: Tensor, n_heads: int, cos: Tensor, sin: Tensor, kv: PagedKV, layer: int) -> Tensor:
    """Rotated queries [n, n_heads, head_dim]. Stores rotated keys, and values, in their slots, which are not checked.

    heads [n, n_heads + 2 n_kv_heads, head_dim], contiguous; cos and sin [n, 1, head_dim].
    """
    k_cache, v_cache = kv.layers[layer]
    n, n_all, head_dim = heads.shape
    queries = torch.empty(n, n_heads, head_dim, dtype=heads.dtype, device=heads.device)
    half = head_dim // 2
    _rotate_and_store[(n, n_all)](
        *(heads, cos, sin, queries, k_cache, v_cache, kv.slots, n_heads, k_cache.shape[1]),
        HALF=half,
        BLOCK_SIZE=k_cache.shape[2],
        BLOCK=triton.next_power_of_2(half),
    )
    return queries


@triton.jit
def _norm(  # type: ignore[no-untyped-def]
    x, delta, weight, sums, out, eps, width, ADD: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    values = tl.load(x + row + columns, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        values += tl.load(delta + row + columns, mask=inside, other=0.0).to(tl.float32)
        rounded = values.to(sums.dtype.element_ty)  # normalise what the next layer will read
        tl.store(sums + row + columns, rounded, mask=inside)
        values = rounded.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / width + eps)
    scaled = values * scale * tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row + columns, scaled.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _silu_mul(x, out, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    gate = tl.load(x + row * 2 * width + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + (row * 2 + 1) * width + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + columns, (gate / (1.0 + tl.exp(-gate)) * up).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _rotate_and_store(  # type: ignore[no-untyped-def]
    heads,
    cos,
    sin,
    queries,
    k_cache,
    v_cache,
    slots,
    n_heads,
    n_kv_heads,
    HALF: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Turns one head of one token (copies a value head), and writes it where it belongs."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, BLOCK)
    inside = columns < HALF
    source = heads + (token * tl.num_programs(1) + head) * 2 * HALF + columns
    low = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(source + HALF, mask=inside, other=0.0).to(tl.float32)
    if head < n_heads + n_kv_heads:
        angle = token * 2 * HALF + columns
        cos_low = tl.load(cos + angle, mask=inside, other=0.0).to(tl.float32)
        cos_high = tl.load(cos + angle + HALF, mask=inside, other=0.0).to(tl.float32)
        sin_low = tl.load(sin + angle, mask=inside, other=0.0).to(tl.float32)
        sin_high = tl.load(sin + angle + HALF, mask=inside, other=0.0).to(tl.float32)
        turned = low * cos_low + high * sin_low
        high = high * cos_high + low * sin_high
        low = turned
    if head < n_heads:
        target = queries + (token * n_heads + head) * 2 * HALF + columns
        tl.store(target, low.to(queries.dtype.element_ty), mask=inside)
        tl.store(target + HALF, high.to(queries.dtype.element_ty), mask=inside)
    else:
        slot = tl.load(slots + token)
        if slot >= 0:
            kv_head = (head - n_heads) % n_kv_heads
            place = ((slot // BLOCK_SIZE * n_kv_heads + kv_head) * BLOCK_SIZE + slot % BLOCK_SIZE) * 2 * HALF + columns
            if head < n_heads + n_kv_heads:
                tl.store(k_cache + place, low.to(k_cache.dtype.element_ty), mask=inside)
                tl.store(k_cache + place + HALF, high.to(k_cache.dtype.element_ty), mask=inside)
            else:
                tl.store(v_cache + place, low.to(v_cache.dtype.element_ty), mask=inside)
                tl.store(v_cache + place + HALF, high.to(v_cache.dtype.element_ty), mask=inside)
