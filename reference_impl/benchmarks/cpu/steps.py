"""One forward pass that can be repeated, which the lessons time.

Each pass is undone when it is finished (`abort`), so the next one finds the cache unchanged and all runs time the same
step. The fastest run counts, since everything else that the machine does can only add to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from reference_impl.benchmarks.probe import median_seconds
from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.common.clock import Clock
from reference_impl.model.fused import fused
from reference_impl.model.llama import Llama
from reference_impl.model.replay import RecordedPasses


def step(
    model: Llama, batch: int = 1, behind: int = 0, n: int = 1, all_logits: bool = False, recorded: bool = False
) -> Callable[[], None]:
    """A pass over `n` new tokens of each of `batch` sequences that have `behind` tokens in the cache.

    n = 1 with tokens behind is a decode step, n > 1 with none a prefill. `all_logits`: logits after every new token,
    which a check of drafts needs, instead of the last one only. `recorded`: replayed, as the engine runs short passes.
    The tokens are made up and the cache holds zeros, since neither changes how long a pass takes.
    """
    weights = model.embed
    cache = ContiguousCache(model.config, batch, behind + n, weights.dtype, weights.device)
    for seq in range(batch):
        cache.add(seq)
        if behind:
            cache.commit(cache.extend([(seq, [0] * behind)]))
    chunks = [(seq, [100 + i for i in range(n)]) for seq in range(batch)]

    forward = RecordedPasses(fused(model)) if recorded else fused(model)

    @torch.inference_mode()
    def run() -> None:
        pass_ = cache.extend(chunks)
        forward(pass_, None if all_logits else pass_.last_rows)
        cache.abort(pass_)

    return run


def seconds(
    model: Llama,
    batch: int = 1,
    behind: int = 0,
    n: int = 1,
    all_logits: bool = False,
    recorded: bool = False,
    repeats: int = 5,
    clock: Clock = time.perf_counter,
) -> float:
    """Seconds of that pass: the fastest of `repeats` after one to warm up. A GPU is timed by its own events."""
    return median_seconds(step(model, batch, behind, n, all_logits, recorded), model.embed.device, clock, repeats, min)
