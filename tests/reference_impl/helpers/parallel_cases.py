"""What the ranks of the tests of tensor parallelism run; a module of its own, since each rank imports it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.cache.paged import PagedCache
from reference_impl.model.llama import Llama
from reference_impl.parallel.tensor_parallel import ParallelLlama, fill

PLAIN = ModelConfig("tiny", 2, 48, 8, 2, 8, 80, 52, max_context=64)
VARIANTS = {
    "two KV heads, untied": PLAIN,
    "one KV head, tied": replace(PLAIN, n_kv_heads=1, tied=True),
    "four KV heads": replace(PLAIN, n_kv_heads=4),
    "as many KV heads as heads": replace(PLAIN, n_kv_heads=8),
    "Qwen2.5": replace(PLAIN, qkv_bias=True, tied=True),
    "Qwen3, heads wider than the model": replace(PLAIN, qk_norm=True, head_dim=16),
    "a vocabulary that does not divide, untied": replace(PLAIN, vocab_size=51),
    "a vocabulary that does not divide, tied": replace(PLAIN, vocab_size=51, tied=True),
}
GROUPS = ([0], [0, 1], [2, 3], [0, 1, 2, 3])  # of four ranks

# Three sequences in one batch: a prefill of different lengths, then steps of one token each, one of two for the last.
PASSES = (
    ([7, 0, 51, 13, 5, 26, 25], [50, 39, 38], [12, 11, 3, 44, 9]),
    ([1], [2], [3]),
    ([13], [26], [39, 50]),
    ([25], [12], [38]),
)


def passes(config: ModelConfig) -> list[list[list[int]]]:
    """The token ids of every pass, inside the vocabulary."""
    return [[[token % config.vocab_size for token in new] for new in one] for one in PASSES]


def whole_model(config: ModelConfig) -> Llama:
    """Random weights that differ everywhere, norms included."""
    model = Llama(config, torch.float64)
    generator = torch.Generator().manual_seed(11)
    for name, view in model.views().items():
        view.normal_(1.0 if "norm" in name else 0.0, 0.2, generator=generator)
    return model


@dataclass(frozen=True)
class Run:
    """What a rank has seen of one model in one group."""

    logits: Tensor  # of every token of every pass, in the order of the batches
    kv_heads: int  # in the rank's cache
    most_alive: int  # whole tensors in memory at once, while loading
    n_params: int


class Streamed:
    """The model's tensors as a file gives them: one at a time. Counts those still in memory."""

    def __init__(self, model: Llama) -> None:
        self.views = model.views()
        self.alive: weakref.WeakSet[object] = weakref.WeakSet()
        self.most_alive = 0

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        for name, view in self.views.items():
            memory = view.numpy().copy()  # alive as long as any tensor or slice of it
            self.alive.add(_Owner.of(memory))
            tensor = torch.from_numpy(memory)
            del memory
            self.most_alive = max(self.most_alive, len(self.alive))
            yield name, tensor
            del tensor


class _Owner:
    """Lives as long as an array does (arrays themselves cannot be in a set)."""

    @staticmethod
    def of(array: object) -> _Owner:
        owner = _Owner()
        weakref.finalize(array, lambda kept: None, owner)
        return owner


def all_runs() -> dict[tuple[str, int], Run]:
    """Every variant in every group that this rank is in: {(variant, ranks in the group): what it saw}."""
    torch.set_grad_enabled(False)
    groups = [(ranks, dist.new_group(ranks)) for ranks in GROUPS]
    found = {}
    for ranks, group in groups:
        if dist.get_rank() in ranks:
            for name, config in VARIANTS.items():
                found[name, len(ranks)] = one_run(config, group)
    return found


def one_run(config: ModelConfig, group: dist.ProcessGroup) -> Run:
    tensors = Streamed(whole_model(config))
    model = ParallelLlama(config, torch.float64, group=group)
    fill(model, tensors, Path("whole"))
    paged = config.tied  # either cache, by turns
    cache = (
        PagedCache(model.config, 12, 4, torch.float64, debug=True)
        if paged
        else ContiguousCache(model.config, 3, 16, torch.float64)
    )
    for seq in range(3):
        cache.add(seq)
    logits = []
    for one in passes(config):
        batch = cache.extend(list(enumerate(one)))
        logits.append(model(batch))
        cache.commit(batch)
    n_params = sum(parameter.numel() for parameter in model.parameters())
    return Run(torch.cat(logits), cache.storage.k.shape[2], tensors.most_alive, n_params)


def fail_on(rank: int) -> None:
    """One rank raises; the others wait for it."""
    if dist.get_rank() == rank:
        raise LookupError("nothing here")
    dist.barrier()


def die_on(rank: int) -> None:
    """One rank ends without a word; the others wait for it."""
    if dist.get_rank() == rank:
        import os

        os._exit(7)
    dist.barrier()


def sleep_on(rank: int) -> None:
    """One rank takes for ever."""
    if dist.get_rank() == rank:
        time.sleep(1000)


def describe(text: str) -> tuple[str, int, int]:
    return text, dist.get_rank(), dist.get_world_size()
