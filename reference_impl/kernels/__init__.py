"""The engine's inner loops behind one interface: the matrix product, attention over blocks, and what lies between.

Each has a plain PyTorch twin (`reference`), a CPU version in Numba (`cpu`) and a GPU version (`triton`). The dispatcher
picks by device, dtype and shape and falls back on the twin, so that the engine calls one name everywhere and computes
the same whatever is installed. `LLM_COURSE_KERNELS=torch` in the environment turns the fast versions off; `backend=`
("torch", "cpu" or "triton") picks one for a single call and refuses what it cannot do.
"""

from __future__ import annotations

from torch import Tensor

from reference_impl.kernels import reference
from reference_impl.kernels.backends import pick, refuse_if_asked
from reference_impl.kernels.packed import PackedWeight, pack
from reference_impl.kernels.quantized import quantized_linear, quantized_norm_linear

__all__ = [
    "PackedWeight",
    "add_rms_norm",
    "linear",
    "look_up",
    "norm_heads",
    "norm_linear",
    "pack",
    "paged_attention",
    "quantized_linear",
    "quantized_norm_linear",
    "rms_norm",
    "rotate",
    "rotated_attention",
    "silu_mul",
    "store_kv",
]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, backend: str | None = None) -> Tensor:
    """x [n, in] times weight [out, in] transposed, plus bias [out] -> [n, out] in x's dtype.

    ValueError if the shapes do not fit each other, or `backend` cannot take this input.
    """
    if x.dim() != 2 or weight.dim() != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"linear: x {list(x.shape)} does not fit weight {list(weight.shape)}: [n, in] and [out, in]")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear: bias {list(bias.shape)} does not fit weight {list(weight.shape)}")
    implementation = pick(x, weight, backend)
    if implementation is not reference and implementation.takes_linear(x, weight):
        return implementation.linear(x, weight, bias)
    return refuse_if_asked(backend, "linear", x, weight).linear(x, weight, bias)


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
    implementation = pick(q, k_cache, backend)
    arguments = (q, k_cache, v_cache, block_tables, query_lens, context_lens, scale)
    if implementation is not reference and implementation.takes_attention(*arguments):
        return implementation.paged_attention(*arguments)
    return refuse_if_asked(backend, "paged_attention", q, k_cache).paged_attention(*arguments)


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
    implementation = pick(k, k_cache, backend)
    if implementation is not reference and implementation.takes_store(k, k_cache, v_cache, slots):
        implementation.store_kv(k, v, k_cache, v_cache, slots)
    else:
        refuse_if_asked(backend, "store_kv", k, k_cache).store_kv(k, v, k_cache, v_cache, slots)


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, backend: str | None = None) -> Tensor:
    """x [..., width] divided by its root mean square, times weight [width] -> like x."""
    if weight.shape != x.shape[-1:]:
        raise ValueError(f"rms_norm: weight {list(weight.shape)} does not fit x {list(x.shape)}")
    implementation = pick(x, weight, backend)
    if implementation is not reference and implementation.takes_rows(x, weight):
        return implementation.rms_norm(x, weight, eps)
    return refuse_if_asked(backend, "rms_norm", x, weight).rms_norm(x, weight, eps)


def norm_heads(
    heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float, *, backend: str | None = None
) -> Tensor:
    """Query, key and value heads of each token [n, n_heads + 2 n_kv_heads, head_dim]: the former two normalised."""
    if heads.dim() != 3 or not q_norm.shape == k_norm.shape == heads.shape[-1:] or (heads.shape[1] - n_heads) % 2:
        raise ValueError(
            f"norm_heads: {list(heads.shape)} with {n_heads} query heads does not fit {list(q_norm.shape)} and "
            f"{list(k_norm.shape)}"
        )
    implementation = pick(heads, q_norm, backend)
    if hasattr(implementation, "norm_heads") and implementation.takes_rows(heads, q_norm, k_norm):
        return implementation.norm_heads(heads, q_norm, k_norm, n_heads, eps)
    return refuse_if_asked(backend, "norm_heads", heads, q_norm).norm_heads(heads, q_norm, k_norm, n_heads, eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, *, backend: str | None = None) -> Tensor:
    """RoPE: turns each pair (x[i], x[i + head_dim/2]) of x [n, heads, head_dim]; cos and sin [n, 1, head_dim].

    The first half of each sine row carries the rotation's minus sign.
    """
    if x.dim() != 3 or cos.shape != sin.shape or cos.shape != (x.shape[0], 1, x.shape[2]):
        raise ValueError(f"rotate: cos {list(cos.shape)} and sin {list(sin.shape)} do not fit x {list(x.shape)}")
    implementation = pick(x, cos, backend)
    if implementation is not reference and implementation.takes_rotation(x, cos, sin):
        return implementation.rotate(x, cos, sin)
    return refuse_if_asked(backend, "rotate", x, cos).rotate(x, cos, sin)


def silu_mul(x: Tensor, *, backend: str | None = None) -> Tensor:
    """x [n, 2 width], gate and up side by side -> silu(gate) * up [n, width]."""
    if x.dim() != 2 or x.shape[1] % 2:
        raise ValueError(f"silu_mul: x {list(x.shape)} does not hold a gate and as much again")
    implementation = pick(x, x, backend)
    if implementation is not reference and implementation.takes_rows(x):
        return implementation.silu_mul(x)
    return refuse_if_asked(backend, "silu_mul", x, x).silu_mul(x)


def add_rms_norm(
    x: Tensor, delta: Tensor | None, weight: Tensor, eps: float, *, backend: str | None = None
) -> tuple[Tensor, Tensor]:
    """(x + delta, its rms_norm), both [n, width] like x; without delta x is the sum itself."""
    if delta is None:
        return x, rms_norm(x, weight, eps, backend=backend)
    if x.shape != delta.shape or weight.shape != x.shape[-1:]:
        raise ValueError(f"add_rms_norm: x {list(x.shape)}, delta {list(delta.shape)}, weight {list(weight.shape)}")
    implementation = pick(x, weight, backend)
    if (
        implementation is not reference
        and hasattr(implementation, "add_rms_norm")
        and implementation.takes_rows(x, delta, weight)
    ):
        return implementation.add_rms_norm(x, delta, weight, eps)
    sums = x + delta
    return sums, rms_norm(sums, weight, eps, backend=backend)


def norm_linear(
    x: Tensor,
    delta: Tensor | None,
    norm: Tensor,
    eps: float,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    gated: bool = False,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    """What a matrix of the decoder does to the residual stream x [n, in]: adds delta, normalises, multiplies.

    Returns (x + delta [n, in], linear(rms_norm(x + delta), weight, bias) [n, out]); `gated` takes silu of the first
    half of the outputs times the second half: [n, out / 2]. One call where a backend can, else its parts.
    """
    implementation = pick(x, weight, backend)
    if hasattr(implementation, "takes_norm_linear") and implementation.takes_norm_linear(x, delta, norm, weight):
        return implementation.norm_linear(x, delta, norm, eps, weight, bias, gated)
    sums, rows = add_rms_norm(x, delta, norm, eps, backend=backend)
    out = linear(rows, weight, bias, backend=None if backend == "triton" else backend)  # a GPU's are cuBLAS's
    return sums, silu_mul(out, backend=backend) if gated else out


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
    *,
    backend: str | None = None,
) -> Tensor:
    """RoPE on queries and keys, keys and values into the cache, attention: `rotate`, `store_kv`, `paged_attention`.

    heads [n_tokens, n_heads + 2 n_kv_heads, head_dim]: queries, keys, values -> [n_tokens, n_heads, head_dim]. The
    other arguments are theirs. One call where a backend can, else its parts.
    """
    n_qk = n_heads + k_cache.shape[1]
    if heads.dim() != 3 or heads.shape[1] != n_qk + k_cache.shape[1] or n_heads % k_cache.shape[1]:
        raise ValueError(f"rotated_attention: heads {list(heads.shape)} do not fit {n_heads} and {list(k_cache.shape)}")
    implementation = pick(heads, k_cache, backend)
    indices = (block_tables, query_lens, context_lens)
    if hasattr(implementation, "takes_rotated_attention") and implementation.takes_rotated_attention(
        heads, cos, sin, k_cache, v_cache, slots, *indices
    ):
        return implementation.rotated_attention(heads, n_heads, cos, sin, k_cache, v_cache, slots, *indices, scale)
    turned = rotate(heads[:, :n_qk], cos, sin, backend=backend)
    store_kv(turned[:, n_heads:], heads[:, n_qk:], k_cache, v_cache, slots, backend=backend)
    return paged_attention(turned[:, :n_heads], k_cache, v_cache, *indices, scale, backend=backend)


def look_up(table: Tensor, index: Tensor, *, backend: str | None = None) -> Tensor:
    """Rows [n, width] of table [rows, width] at index int64 [n]; on a CPU bfloat16 comes as float32.

    Such processors compute faster in float32, so there bfloat16 only stores.
    """
    implementation = pick(table, table, backend)
    if hasattr(implementation, "takes_look_up") and implementation.takes_look_up(table, index):
        return implementation.look_up(table, index)
    return reference.look_up(table, index)
