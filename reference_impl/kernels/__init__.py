"""The engine's inner loops behind one interface: `linear`, `paged_attention` and `store_kv`.

Each has a plain PyTorch twin (`reference`), a CPU version (`cpu`) and a GPU version (`triton`). The dispatcher picks by
device, dtype and shape and falls back on the twin, so that the engine calls one name everywhere. `LLM_COURSE_KERNELS=
torch` in the environment turns the fast versions off; `backend=` picks one for a single call, mostly in tests.
"""

from __future__ import annotations

from torch import Tensor

from reference_impl.kernels import reference

__all__ = ["linear", "paged_attention", "store_kv"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, backend: str | None = None) -> Tensor:
    """x [n, in] times weight [out, in] transposed, plus bias [out] -> [n, out] in x's dtype."""
    return reference.linear(x, weight, bias)


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
    """Causal grouped-query attention of new tokens over paged keys and values; see `reference.paged_attention`."""
    return reference.paged_attention(q, k_cache, v_cache, block_tables, query_lens, context_lens, scale)


def store_kv(
    k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor, *, backend: str | None = None
) -> None:
    """Writes new keys and values into their slots of the caches; see `reference.store_kv`."""
    reference.store_kv(k, v, k_cache, v_cache, slots)
