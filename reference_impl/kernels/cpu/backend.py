"""The CPU backend: which inputs the Numba kernels take, and how they are called.

A call costs a few microseconds beside its kernel, and a decode step makes two hundred calls. So there are few checks,
and a kernel gets what it needs as numbers and addresses (`records`).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from reference_impl.kernels.backend import Backend, Matrix
from reference_impl.kernels.cpu import attention, linear, quantized, rows
from reference_impl.kernels.cpu.launch import LISTENING, PARALLEL, Argument, Kernel, compiled, launch
from reference_impl.kernels.packed import PackedWeight
from reference_impl.kernels.paged import PagedKV

SUFFIX = {torch.float32: "f32", torch.bfloat16: "bf16"}
MAX_ROWS = 64  # with more rows of x torch's packed matrix product is faster (measured: equal at 64)
ROWS_ALONE = 16  # fewer rows are done before another thread would wake up
# With this many new tokens over this much context, torch's attention on gathered blocks is faster (up to 2.6 times).
LONG_CHUNK = 64
LONG_CONTEXT = 512


class Numba(Backend):
    """Computes in float32, over weights and caches in float32 or bfloat16."""

    name = "cpu"

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor | None) -> Tensor | None:
        """Takes few rows in half or single precision, and sums in float32. Many rows times floats are left to torch."""
        if not _takes_product(x, weight):
            return None
        if bias is not None and (bias.dtype not in SUFFIX or not bias.is_contiguous()):
            bias = _float32(bias).contiguous()
        out = _multiply(_float32(x).contiguous(), None, None, 0.0, weight, bias, False)[1]
        return out if x.dtype is torch.float32 else out.to(x.dtype)

    def norm_linear(
        self,
        x: Tensor,
        delta: Tensor | None,
        norm: Tensor,
        eps: float,
        weight: Matrix,
        bias: Tensor | None,
        gated: bool,
    ) -> tuple[Tensor, Tensor] | None:
        """Takes few rows in float32, which a bfloat16 model computes in too."""
        if not (_takes_product(x, weight) and norm.dtype in SUFFIX and _on_cpu(norm) and _takes_rows(x)):
            return None
        if delta is not None and not _takes_rows(delta):
            return None
        return _multiply(x, delta, norm, eps, weight, bias, gated)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor | None:
        if not _takes_rows(x, weight):
            return None
        out = torch.empty_like(x)
        width = x.shape[-1]
        n = x.numel() // width
        _run(kernel("rms_norm", weight.dtype), x, weight, out, n, width, _bits(eps), alone=n < ROWS_ALONE)
        return out

    def norm_heads(self, heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float) -> Tensor | None:
        if not _takes_rows(heads, q_norm, k_norm):
            return None
        n, n_all, head_dim = heads.shape
        out = torch.empty_like(heads)
        _run(
            kernel("norm_heads", q_norm.dtype),
            *(heads, q_norm, k_norm.to(q_norm.dtype), out, n, n_heads, n_all, head_dim, _bits(eps)),
            alone=n < ROWS_ALONE,
        )
        return out

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor | None:
        if not _takes_rotation(x, cos, sin):
            return None
        n, n_heads, head_dim = x.shape
        x = _with_packed_heads(x)
        out = torch.empty(n, n_heads, head_dim, dtype=torch.float32)
        _run(kernel("rotate", torch.float32), x, cos, sin, out, n, n_heads, head_dim, x.stride(0), alone=n < ROWS_ALONE)
        return out

    def silu_mul(self, x: Tensor) -> Tensor | None:
        if not _takes_rows(x):
            return None
        n, width = x.shape[0], x.shape[1] // 2
        out = torch.empty(n, width, dtype=torch.float32)
        _run(kernel("silu_mul", torch.float32), x, out, n, width, alone=n < ROWS_ALONE)
        return out

    def look_up(self, table: Tensor, index: Tensor) -> Tensor | None:
        """The result is float32. IndexError for an index outside the table."""
        if not (table.dtype in SUFFIX and index.dtype is torch.int64 and _on_cpu(table, index)):
            return None
        n, width = len(index), table.shape[1]
        out = torch.empty(n, width, dtype=torch.float32)
        if _run(kernel("look_up", table.dtype), table, index, out, n, len(table), width, alone=n < ROWS_ALONE):
            raise IndexError(f"index {index.tolist()} does not fit a table of {len(table)} rows")
        return out

    def store_kv(self, k: Tensor, v: Tensor, kv: PagedKV, layer: int) -> bool:
        """IndexError for a slot beyond the cache."""
        if not _takes_store(k, kv, layer):
            return False
        keys, values = kv.layers[layer]
        n_tokens, n_kv_heads, head_dim = k.shape
        n_blocks, _, block_size, _ = keys.shape
        k, v = _with_packed_heads(_float32(k)), _with_packed_heads(_float32(v))
        status = _run(
            kernel("store", keys.dtype),
            *(k, v, keys, values, kv.slots, n_tokens, n_kv_heads, head_dim, n_blocks, block_size),
            *(k.stride(0), v.stride(0)),
            alone=n_tokens < 64,
        )
        if status:
            _require_slots(kv, keys)
        return True

    def paged_attention(self, q: Tensor, kv: PagedKV, layer: int) -> Tensor | None:
        """Leaves a long chunk over a long context to torch. IndexError for a block that is not in the cache."""
        if not _takes_attention(q, kv, layer):
            return None
        block_size = kv.layers[layer][0].shape[2]
        if len(q) < LONG_CHUNK or kv.block_tables.shape[1] * block_size < LONG_CONTEXT:
            return _attend_blocks(q, kv, layer)
        parts, first = [], 0
        for seq, (new, context) in enumerate(zip(kv.query_lens.tolist(), kv.context_lens.tolist(), strict=True)):
            attend = _attend_gathered if new >= LONG_CHUNK and context >= LONG_CONTEXT else _attend_blocks
            parts.append(attend(q[first : first + new], kv.of_sequence(seq), layer))
            first += new
        if first != len(q):
            raise _out_of_range(kv, layer, len(q))
        return torch.cat(parts)

    def rotated_attention(
        self, heads: Tensor, n_heads: int, cos: Tensor, sin: Tensor, kv: PagedKV, layer: int
    ) -> Tensor | None:
        """Takes decode and verification steps: a task is a sequence, and there must be enough of them for the threads.

        IndexError for a slot or block that is not in the cache.
        """
        if len(heads) > 8 * len(kv.query_lens) or not _takes_rotation(heads, cos, sin):
            return None
        if not (_takes_store(heads, kv, layer) and _takes_attention(heads, kv, layer)):
            return None
        heads = _with_packed_heads(heads)
        keys, values = kv.layers[layer]
        n_tokens, _, head_dim = heads.shape
        n_blocks, n_kv_heads, block_size, _ = keys.shape
        out = torch.empty(n_tokens, n_heads, head_dim, dtype=torch.float32)
        status = _run(
            kernel("rotated_attention", keys.dtype),
            *(heads, keys, values, out, kv.block_tables, kv.query_lens, kv.context_lens, cos, sin, kv.slots),
            *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(kv.query_lens)),
            *(kv.block_tables.shape[1], heads.stride(0), _bits(head_dim**-0.5)),
        )
        if status:
            _require_slots(kv, keys)
            raise _out_of_range(kv, layer, n_tokens)
        return out


@cache
def kernel(name: str, dtype: torch.dtype) -> Kernel:
    """The compiled kernel for a weight or cache dtype, compiled when it is first needed."""
    names = (name, f"{name}_{SUFFIX[dtype]}")
    modules = (linear, quantized, attention, rows)
    return compiled(next(getattr(m, n) for n in reversed(names) for m in modules if hasattr(m, n)))


def _run(kernel: Kernel, *arguments: Argument, alone: bool = False) -> int:
    """Runs a kernel on torch's threads and returns its status, 0 if all is well.

    arguments: the fields of the kernel's record (`records`) in order, without counter and status; a tensor stands for
    its address. `alone`: only on the calling thread, for work that is done before another thread wakes up.
    """
    numbers = tuple([_number(argument) for argument in arguments])
    if LISTENING.recorder is not None:
        LISTENING.recorder.add(kernel, arguments, numbers)
    return launch(0 if alone else PARALLEL, kernel.address, 1 if alone else torch.get_num_threads(), *numbers)


def _number(argument: Argument) -> int:
    if isinstance(argument, Tensor):
        return argument.data_ptr()
    return 0 if argument is None else int(argument)


def _multiply(
    x: Tensor, delta: Tensor | None, norm: Tensor | None, eps: float, weight: Matrix, bias: Tensor | None, gated: bool
) -> tuple[Tensor, Tensor]:
    """(x + delta, its norm times weight, then gate or bias), in float32. delta, norm and bias may be None."""
    if isinstance(weight, PackedWeight) and len(x) > MAX_ROWS:  # in parts, so that x stays in the cache
        deltas = [None] * len(x) if delta is None else delta.split(MAX_ROWS)
        parts = zip(x.split(MAX_ROWS), deltas, strict=False)
        both = [_multiply(part, its_delta, norm, eps, weight, bias, gated) for part, its_delta in parts]
        return torch.cat([sums for sums, _ in both]), torch.cat([out for _, out in both])
    (n, n_in), n_out = x.shape, weight.shape[0] // (2 if gated else 1)
    out = torch.empty(n, n_out, dtype=torch.float32)
    sums = x if delta is None else torch.empty_like(x)
    rest = (
        *(out, n, n_in, n_out, delta, norm, _is_bf16(norm), _bits(eps)),
        *(None if delta is None else sums, bias, gated, _share(n_out), _is_bf16(bias)),
    )
    if isinstance(weight, PackedWeight):
        usual = f"_{weight.width}" if weight.width in quantized.USUAL else ""
        _run(
            kernel(f"quantized_int{weight.bits}{usual}", torch.float32),
            *(x, weight.codes, *rest, weight.scales, weight.shifts),
            *(weight.group_size, weight.width, weight.stored, weight.scales.shape[1]),
        )
    else:
        kind = "linear_bf16_pair" if weight.dtype is torch.bfloat16 and n_in % 2 == 0 else "linear"
        _run(kernel(kind, weight.dtype), x, weight, *rest)
    return sums, out


def _attend_blocks(q: Tensor, kv: PagedKV, layer: int) -> Tensor:
    """Attention by the kernel that reads keys and values where they lie."""
    keys, values = kv.layers[layer]
    n_tokens, n_heads, head_dim = q.shape
    n_blocks, n_kv_heads, block_size, _ = keys.shape
    queries = _with_packed_heads(_float32(q))
    out = torch.empty(n_tokens, n_heads, head_dim, dtype=torch.float32)
    status = _run(
        kernel("attention", keys.dtype),
        *(queries, keys, values, out, kv.block_tables, kv.query_lens, kv.context_lens),
        *(n_tokens, n_heads, n_kv_heads, head_dim, n_blocks, block_size, len(kv.query_lens)),
        *(kv.block_tables.shape[1], queries.stride(0), _bits(head_dim**-0.5)),
    )
    if status:
        raise _out_of_range(kv, layer, n_tokens)
    return out if q.dtype is torch.float32 else out.to(q.dtype)


def _attend_gathered(q: Tensor, kv: PagedKV, layer: int) -> Tensor:
    """Attention of one sequence's long chunk: copies its blocks together and calls torch's own."""
    keys, values = kv.layers[layer]
    n_blocks, n_kv_heads, block_size, head_dim = keys.shape
    new, context = len(q), int(kv.context_lens[0])
    blocks = kv.block_tables[0, : -(-context // block_size)].long()
    if not new <= context <= len(blocks) * block_size or int(blocks.min()) < 0 or int(blocks.max()) >= n_blocks:
        raise _out_of_range(kv, layer, new)
    keys, values = (
        cache[blocks].transpose(0, 1).reshape(1, n_kv_heads, -1, head_dim)[:, :, :context].to(torch.float32)
        for cache in (keys, values)
    )
    seen = torch.ones(new, context, dtype=torch.bool).tril(context - new)
    queries = _float32(q).transpose(0, 1)[None]
    out = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen, enable_gqa=True)
    return out[0].transpose(0, 1).to(q.dtype)


def _takes_product(x: Tensor, weight: Matrix) -> bool:
    if isinstance(weight, PackedWeight):
        return x.dtype in SUFFIX and x.shape[0] > 0 and _on_cpu(x, *weight.tensors)
    return x.dtype in SUFFIX and weight.dtype in SUFFIX and 0 < x.shape[0] <= MAX_ROWS and _on_cpu(x, weight)


def _takes_rows(x: Tensor, *weights: Tensor) -> bool:
    """Whether x is float32, and contiguous."""
    return (
        x.dtype is torch.float32
        and all(w.dtype in SUFFIX for w in weights)
        and x.is_contiguous()
        and x.numel() > 0
        and _on_cpu(x, *weights)
    )


def _takes_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> bool:
    return x.dtype is cos.dtype is sin.dtype is torch.float32 and x.shape[2] % 2 == 0 and _on_cpu(x, cos, sin)


def _takes_store(k: Tensor, kv: PagedKV, layer: int) -> bool:
    keys, values = kv.layers[layer]
    return keys.dtype in SUFFIX and kv.slots.dtype is torch.int64 and _on_cpu(k, keys, values, kv.slots)


def _takes_attention(q: Tensor, kv: PagedKV, layer: int) -> bool:
    """Whether dtypes fit, int32 for index tensors, and all is on the CPU."""
    keys, values = kv.layers[layer]
    indices = (kv.block_tables, kv.query_lens, kv.context_lens)
    return (
        q.dtype in SUFFIX
        and keys.dtype in SUFFIX
        and values.dtype is keys.dtype
        and all(index.dtype is torch.int32 for index in indices)
        and _on_cpu(q, keys, values, *indices)
    )


def _on_cpu(first: Tensor, *memory: Tensor) -> bool:
    return first.is_cpu and all(tensor.is_cpu and tensor.is_contiguous() for tensor in memory)


def _float32(x: Tensor) -> Tensor:
    return x if x.dtype is torch.float32 else x.to(torch.float32)


def _is_bf16(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype is torch.bfloat16


def _with_packed_heads(x: Tensor) -> Tensor:
    """x [tokens, heads, head_dim] with each token's heads contiguous; tokens may be further apart."""
    return x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()


def _share(n_out: int) -> int:
    """Weight rows that a thread takes at a time: two shares for each thread, so that none waits long for the last.

    Longer shares are read faster.
    """
    return max(16, min(512, -(-n_out // (2 * torch.get_num_threads()))))


@cache
def _bits(value: float) -> int:
    """The 64 bits of a float as an integer, which is how a float travels to a kernel."""
    return int(np.float64(value).view(np.int64))


def _require_slots(kv: PagedKV, keys: Tensor) -> None:
    n_blocks, _, block_size, _ = keys.shape
    if int(kv.slots.max()) >= n_blocks * block_size:
        raise IndexError(f"slots {kv.slots.tolist()} do not fit a cache of {n_blocks} blocks of {block_size}")


def _out_of_range(kv: PagedKV, layer: int, n_tokens: int) -> IndexError:
    n_blocks, _, block_size, _ = kv.layers[layer][0].shape
    return IndexError(
        f"lengths {kv.query_lens.tolist()} of contexts {kv.context_lens.tolist()} with tables "
        f"{kv.block_tables.tolist()} do not fit {n_tokens} new tokens in a cache of {n_blocks} blocks of {block_size}"
    )


BACKEND = Numba()
