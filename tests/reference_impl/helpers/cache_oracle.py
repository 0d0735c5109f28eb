"""What the cache tests share: a tiny Llama in float64, and the same model run over a whole text without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.interface import KVCache
from reference_impl.cache.recompute import Recompute
from reference_impl.model.llama import Llama

TINY = ModelConfig(
    "tiny", n_layers=2, d_model=16, n_heads=4, n_kv_heads=2, head_dim=4, d_ff=24, vocab_size=400, max_context=1024
)


@cache
def tiny_llama(dtype: torch.dtype = torch.float64, device: str = "cpu") -> Llama:
    if (dtype, device) == (torch.float64, "cpu"):
        return Llama(TINY, dtype=dtype).randomize(torch.Generator().manual_seed(7), std=0.3)
    model = Llama(TINY, dtype=dtype, device=device)
    model.load_state_dict(tiny_llama().state_dict())
    return model


def text(n_tokens: int, seed: int = 0) -> list[int]:
    """Random token ids."""
    return torch.randint(TINY.vocab_size, (n_tokens,), generator=torch.Generator().manual_seed(seed)).tolist()


def recomputed(tokens: Sequence[int]) -> Tensor:
    """Logits [tokens, vocab_size] after every token: the whole text at once, nothing kept from before."""
    return tiny_llama()(Recompute(tokens))


def step(kv: KVCache, *chunks: tuple[object, Sequence[int]]) -> list[Tensor]:
    """One forward pass; the logits [new tokens, vocab_size] of each sequence."""
    batch = kv.extend(chunks)
    logits = tiny_llama()(batch)
    kv.commit(batch)
    return list(logits.split([len(tokens) for _, tokens in chunks]))


def assert_same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=1e-9)
