"""The CPU kernels' front: takes tensors apart into addresses and sizes, and says which inputs the kernels can do.

The kernels themselves are in `cpu_linear` and `cpu_attention`, how they run on every core in `threads`. A call costs a
few microseconds beside the kernel, which matters where a decode step makes two hundred.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from reference_impl.kernels import cpu_attention, cpu_linear, cpu_quantized, cpu_rows
from reference_impl.kernels.cpu_attention import OUT_OF_RANGE
from reference_impl.kernels.packed import PackedWeight
from reference_impl.kernels.threads import Kernel, compiled

FUSES_NORM = True  # products with a norm before them are one call
MAX_ROWS = 64  # above this many rows of x, torch's packed matrix product is faster (measured: level at 64)
ROWS_ALONE = 16  # fewer rows are done before another thread wakes up
LONG_CHUNK = 64  # new tokens of a sequence ...
LONG_CONTEXT = 512  # ... and its context, from which torch's attention on gathered blocks is faster (up to 2.6 times)

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


def takes_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> bool:
    return x.dtype is cos.dtype is sin.dtype is torch.float32 and x.shape[2] % 2 == 0 and _on_cpu(x, cos, sin)


def _on_cpu(first: Tensor, *memory: Tensor) -> bool:
    return first.is_cpu and all(tensor.is_cpu and tensor.is_contiguous() for tensor in memory)


def takes_rows(x: Tensor, *weights: Tensor) -> bool:
    """float32 rows that follow each other in memory."""
    return (
        x.dtype is torch.float32
        and all(w.dtype in _SUFFIX for w in weights)
        and x.is_contiguous()
        and x.numel() > 0
        and _on_cpu(x, *weights)
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `reference.linear`, for float32 or bfloat16; sums in float32."""
    if bias is not None and (bias.dtype not in _SUFFIX or not bias.is_contiguous()):
        bias = _float32(bias).contiguous()
    out = _multiply(_float32(x).contiguous(), weight, bias=bias)
    return out if x.dtype is torch.float32 else out.to(x.dtype)


def takes_quantized(x: Tensor, delta: Tensor | None, norm: Tensor | None, weight: PackedWeight) -> bool:
    """Few rows in single precision (or half, where nothing comes before the product)."""
    if norm is not None and not (norm.dtype in _SUFFIX and _on_cpu(norm) and takes_rows(x)):
        return False
    fits = delta is None or takes_rows(delta)
    return fits and x.dtype in _SUFFIX and x.shape[0] > 0 and _on_cpu(x, *weight.tensors)


def quantized_linear(
    x: Tensor,
    weight: PackedWeight,
    bias: Tensor | None = None,
    delta: Tensor | None = None,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
) -> tuple[Tensor, Tensor]:
    """(x + delta, as `reference.quantized_linear`), with x rounded to 16 bits (see `cpu_quantized`)."""
    if len(x) > MAX_ROWS:  # so that x stays in the cache
        deltas = [None] * len(x) if delta is None else delta.split(MAX_ROWS)
        rest = (bias, norm, eps, gated)
        parts = [_quantized(rows, weight, d, *rest) for rows, d in zip(x.split(MAX_ROWS), deltas, strict=False)]
        return torch.cat([sums for sums, _ in parts]), torch.cat([out for _, out in parts])
    return _quantized(x, weight, delta, bias, norm, eps, gated)


def _quantized(
    x: Tensor,
    weight: PackedWeight,
    delta: Tensor | None,
    bias: Tensor | None,
    norm: Tensor | None,
    eps: float,
    gated: bool,
) -> tuple[Tensor, Tensor]:
    rows = _float32(x).contiguous()
    (n, n_in), n_out = x.shape, weight.shape[0] // (2 if gated else 1)
    out = torch.empty(n, n_out, dtype=torch.float32)
    sums = x if delta is None else torch.empty_like(x)
    usual = "_usual" if weight.width == cpu_quantized.USUAL else ""
    _kernel(f"quantized_int{weight.bits}{usual}", torch.float32).run(
        *(rows, weight.codes, out, n, n_in, n_out, delta, norm, _is_bf16(norm), _bits(eps)),
        *(None if delta is None else sums, bias, gated, _share(n_out), _is_bf16(bias)),
        *(weight.scales, weight.shifts, weight.group_size, weight.width, weight.stored, weight.scales.shape[1]),
    )
    return sums, out if x.dtype is torch.float32 else out.to(x.dtype)


def takes_norm_linear(x: Tensor, delta: Tensor | None, norm: Tensor, weight: Tensor) -> bool:
    """Few rows in float32; a bfloat16 model computes in it too."""
    rows = (x,) if delta is None else (x, delta)
    return takes_linear(x, weight) and norm.dtype in _SUFFIX and _on_cpu(norm) and all(takes_rows(r) for r in rows)


def norm_linear(
    x: Tensor, delta: Tensor | None, norm: Tensor, eps: float, weight: Tensor, bias: Tensor | None, gated: bool
) -> tuple[Tensor, Tensor]:
    """As `reference.norm_linear`, in one call."""
    sums = x if delta is None else torch.empty_like(x)
    return sums, _multiply(x, weight, bias, delta, norm, eps, sums, gated)


def _multiply(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    delta: Tensor | None = None,
    norm: Tensor | None = None,
    eps: float = 0.0,
    sums: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    (n, n_in), n_out = x.shape, weight.shape[0] // (2 if gated else 1)
    out = torch.empty(n, n_out, dtype=torch.float32)
    kind = "linear_bf16_pair" if weight.dtype is torch.bfloat16 and n_in % 2 == 0 else "linear"
    _kernel(kind, weight.dtype).run(
        *(x, weight, out, n, n_in, n_out, delta, norm, _is_bf16(norm), _bits(eps)),
        *(None if delta is None else sums, bias, gated, _share(n_out), _is_bf16(bias)),
    )
    return out


def _is_bf16(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype is torch.bfloat16


def _share(n_out: int) -> int:
    """Weight rows that a thread takes at a time: two runs each, so that none waits long for the last.

    The longer a run, the faster it is read: with 256 rows instead of 64 int8 took 0.8 of the time.
    """
    return max(16, min(512, -(-n_out // (2 * torch.get_num_threads()))))


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
    arguments = (q, k_cache, v_cache, block_tables, query_lens, context_lens, scale)
    if len(q) < LONG_CHUNK or block_tables.shape[1] * k_cache.shape[2] < LONG_CONTEXT:
        return _from_blocks(*arguments)
    parts, first = [], 0
    for seq, (new, context) in enumerate(zip(query_lens.tolist(), context_lens.tolist(), strict=True)):
        own = slice(seq, seq + 1)
        attend = _gathered if new >= LONG_CHUNK and context >= LONG_CONTEXT else _from_blocks
        rows = q[first : first + new]
        parts.append(attend(rows, k_cache, v_cache, block_tables[own], query_lens[own], context_lens[own], scale))
        first += new
    if first != len(q):
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, len(q))
    return torch.cat(parts)


def _gathered(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """One sequence's long chunk: its blocks copied together, then torch's own attention."""
    _, n_kv_heads, block_size, head_dim = k_cache.shape
    new, context = len(q), int(context_lens[0])
    blocks = block_tables[0, : -(-context // block_size)].long()
    if not new <= context <= len(blocks) * block_size or int(blocks.min()) < 0 or int(blocks.max()) >= len(k_cache):
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, new)
    keys, values = (
        cache[blocks].transpose(0, 1).reshape(1, n_kv_heads, -1, head_dim)[:, :, :context].to(torch.float32)
        for cache in (k_cache, v_cache)
    )
    seen = torch.ones(new, context, dtype=torch.bool).tril(context - new)
    queries = _float32(q).transpose(0, 1)[None]
    out = torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=seen, scale=scale, enable_gqa=True
    )
    return out[0].transpose(0, 1).to(q.dtype)


def _from_blocks(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """The kernel that reads keys and values where they lie."""
    n_tokens, n_heads, head_dim = q.shape
    n_blocks, n_kv_heads, block_size, _ = k_cache.shape
    queries = _with_packed_heads(_float32(q))
    out = torch.empty(n_tokens, n_heads, head_dim, dtype=torch.float32)
    status = _kernel("attention", k_cache.dtype).run(
        *(queries, k_cache, v_cache, out, block_tables, query_lens, context_lens),
        *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(query_lens)),
        *(block_tables.shape[1], queries.stride(0), _bits(scale)),
    )
    if status == OUT_OF_RANGE:
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, n_tokens)
    return out if q.dtype is torch.float32 else out.to(q.dtype)


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
    """Decode and verification steps: a task is a sequence, and there should be enough of them for the threads."""
    few = len(heads) <= 8 * len(query_lens)
    return (
        few
        and takes_rotation(heads, cos, sin)
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
    """As `reference.rotated_attention`, in one call. IndexError for a slot or block that is not in the cache."""
    heads = _with_packed_heads(heads)
    n_tokens, _, head_dim = heads.shape
    n_blocks, n_kv_heads, block_size, _ = k_cache.shape
    out = torch.empty(n_tokens, n_heads, head_dim, dtype=torch.float32)
    status = _kernel("rotated_attention", k_cache.dtype).run(
        *(heads, k_cache, v_cache, out, block_tables, query_lens, context_lens, cos, sin, slots),
        *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(query_lens)),
        *(block_tables.shape[1], heads.stride(0), _bits(scale)),
    )
    if status == OUT_OF_RANGE:
        _require_slots(slots, k_cache)
        raise _out_of_range(k_cache, block_tables, query_lens, context_lens, n_tokens)
    return out


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """As `reference.store_kv`. IndexError for a slot beyond the cache."""
    n_tokens, n_kv_heads, head_dim = k.shape
    n_blocks, _, block_size, _ = k_cache.shape
    k, v = _with_packed_heads(_float32(k)), _with_packed_heads(_float32(v))
    status = _kernel("store", k_cache.dtype).run(
        *(k, v, k_cache, v_cache, slots, n_tokens, n_kv_heads, head_dim, n_blocks, block_size),
        *(k.stride(0), v.stride(0)),
        alone=n_tokens < 64,
    )
    if status == OUT_OF_RANGE:
        _require_slots(slots, k_cache)


def _require_slots(slots: Tensor, k_cache: Tensor) -> None:
    n_blocks, _, block_size, _ = k_cache.shape
    if int(slots.max()) >= n_blocks * block_size:
        raise IndexError(f"slots {slots.tolist()} do not fit a cache of {n_blocks} blocks of {block_size}")


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As `reference.rms_norm`, for float32 rows."""
    out = torch.empty_like(x)
    width = x.shape[-1]
    n = x.numel() // width
    _kernel("rms_norm", weight.dtype).run(x, weight, out, n, width, _bits(eps), alone=n < ROWS_ALONE)
    return out


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As `reference.rotate`, for float32."""
    n, heads, head_dim = x.shape
    x = _with_packed_heads(x)
    out = torch.empty(n, heads, head_dim, dtype=torch.float32)
    _kernel("rotate", torch.float32).run(x, cos, sin, out, n, heads, head_dim, x.stride(0), alone=n < ROWS_ALONE)
    return out


def silu_mul(x: Tensor) -> Tensor:
    """As `reference.silu_mul`, for float32 rows."""
    n, width = x.shape[0], x.shape[1] // 2
    out = torch.empty(n, width, dtype=torch.float32)
    _kernel("silu_mul", torch.float32).run(x, out, n, width, alone=n < ROWS_ALONE)
    return out


def takes_look_up(table: Tensor, index: Tensor) -> bool:
    return table.dtype in _SUFFIX and index.dtype is torch.int64 and _on_cpu(table, index)


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """As `reference.look_up`, in float32. IndexError for an index outside the table."""
    n, width = len(index), table.shape[1]
    out = torch.empty(n, width, dtype=torch.float32)
    if _kernel("look_up", table.dtype).run(table, index, out, n, len(table), width, alone=n < ROWS_ALONE):
        raise IndexError(f"index {index.tolist()} does not fit a table of {len(table)} rows")
    return out


def _out_of_range(
    k_cache: Tensor, block_tables: Tensor, query_lens: Tensor, context_lens: Tensor, n_tokens: int
) -> IndexError:
    return IndexError(
        f"lengths {query_lens.tolist()} of contexts {context_lens.tolist()} with tables {block_tables.tolist()} "
        f"do not fit {n_tokens} new tokens in a cache of {len(k_cache)} blocks of {k_cache.shape[2]}"
    )


def _float32(x: Tensor) -> Tensor:
    return x if x.dtype is torch.float32 else x.to(torch.float32)


def _with_packed_heads(x: Tensor) -> Tensor:
    """[tokens, heads, head_dim] whose heads follow each other in memory; tokens may be further apart."""
    return x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()


@cache
def _bits(value: float) -> int:
    """The 64 bits of a float as an integer, as which it travels to a kernel."""
    return int(np.float64(value).view(np.int64))


@cache
def _kernel(name: str, dtype: torch.dtype) -> Kernel:
    """The compiled kernel for a weight or cache dtype, made when it is first needed."""
    modules = (cpu_linear, cpu_quantized, cpu_attention, cpu_rows)
    names = (name, f"{name}_{_SUFFIX[dtype]}")
    return compiled(next(getattr(m, n) for n in reversed(names) for m in modules if hasattr(m, n)))
