"""Random paged caches for the kernel tests: blocks in random order, everything that no sequence owns is NaN."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reference_impl.kernels import PagedKV


@dataclass(frozen=True)
class Case:
    """Sequences of `contexts` tokens whose last `new` tokens ask; heads share n_kv_heads KV heads."""

    contexts: tuple[int, ...]
    new: tuple[int, ...]
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 16
    block_size: int = 4
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class Paged:
    """What a kernel is given, and the packed keys and values of the whole sequences that it was made from."""

    q: Tensor
    k: Tensor
    v: Tensor
    kv: PagedKV  # of one layer; its slots are those of all tokens, not of the new ones alone

    @property
    def keys(self) -> Tensor:
        return self.kv.layers[0][0]

    @property
    def values(self) -> Tensor:
        return self.kv.layers[0][1]


def paged(case: Case, seed: int = 0) -> Paged:
    """Keys and values lie in their slots; q, k and v are slices of larger tensors, as the model's are."""
    random = torch.Generator().manual_seed(seed)
    size, n_tokens = case.block_size, sum(case.contexts)
    counts = [-(-context // size) for context in case.contexts]
    n_blocks = sum(counts) + 2
    order = torch.randperm(n_blocks, generator=random)
    tables = torch.zeros(len(counts), max(counts), dtype=torch.int32)
    slots = []
    for i, (count, context) in enumerate(zip(counts, case.contexts, strict=True)):
        tables[i, :count] = order[sum(counts[:i]) :][:count]
        slots += [int(tables[i, t // size]) * size + t % size for t in range(context)]
    heads = torch.randn(n_tokens, case.n_heads + 2 * case.n_kv_heads, case.head_dim, generator=random).to(case.dtype)
    k, v = heads[:, case.n_heads : -case.n_kv_heads], heads[:, -case.n_kv_heads :]
    shape = (n_blocks, case.n_kv_heads, size, case.head_dim)
    k_cache, v_cache = (torch.full(shape, float("nan"), dtype=case.dtype) for _ in range(2))
    for token, slot in enumerate(slots):
        k_cache[slot // size, :, slot % size] = k[token]
        v_cache[slot // size, :, slot % size] = v[token]
    q = torch.randn(sum(case.new), case.n_heads + 1, case.head_dim, generator=random).to(case.dtype)[:, 1:]
    lens = [torch.tensor(values, dtype=torch.int32) for values in (case.new, case.contexts)]
    return Paged(q, k, v, PagedKV([(k_cache, v_cache)], torch.tensor(slots), tables, *lens))


def empty_like(kv: PagedKV, slots: Tensor | None = None) -> PagedKV:
    """Blocks of the same shape without keys and values (NaN), and other slots if they are given."""
    caches = tuple(torch.full_like(cache, float("nan")) for cache in kv.layers[0])
    return replace(kv, layers=[caches], slots=kv.slots if slots is None else slots)


def on_device(kv: PagedKV, device: str) -> PagedKV:
    """A copy of it all."""
    caches = tuple(cache.clone().to(device) for cache in kv.layers[0])
    indices = (kv.slots, kv.block_tables, kv.query_lens, kv.context_lens)
    return PagedKV([caches], *(index.clone().to(device) for index in indices))


def expected_attention(case: Case, made: Paged) -> Tensor:
    """The oracle: torch's own attention in float64 over each sequence's keys and values, no cache, one query a call."""
    out, first, row = [], 0, 0
    group = case.n_heads // case.n_kv_heads
    for context, new in zip(case.contexts, case.new, strict=True):
        for position in range(context - new, context):
            k, v = (
                t[first : first + position + 1].double().transpose(0, 1).repeat_interleave(group, 0)
                for t in (made.k, made.v)
            )
            query = made.q[row].double()[:, None]
            out.append(torch.nn.functional.scaled_dot_product_attention(query, k, v)[:, 0])
            row += 1
        first += context
    return torch.stack(out)
