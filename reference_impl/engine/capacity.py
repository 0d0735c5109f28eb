"""What one machine can take: memory for a KV cache, and how many tokens fit into a pass of bounded length.

While a prompt is computed, every running answer waits for the pass that it is in. So the longest pass is the longest
gap between two tokens of any answer, and a budget of tokens bounds it (Agrawal et al. 2024, "Sarathi-Serve", section
4). What a pass costs depends on machine and model, so it is measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from reference_impl.common.clock import Clock
from reference_impl.engine.config import EngineConfig

if TYPE_CHECKING:
    from reference_impl.bounds.config import ModelConfig
    from reference_impl.model.llama import Llama

MAX_GAP = 0.2  # seconds that a pass should take at most
LEAST_BUDGET, MOST_BUDGET = 16, 512  # tokens in a pass, where the machine's own speed decides

SMALL, LARGE = 16, 128  # tokens of the passes that are measured
BEHIND = 3 * LARGE  # tokens of the same prompt before them


def require_memory(config: EngineConfig, model: ModelConfig, dtype: torch.dtype, device: torch.device) -> None:
    """ValueError, with both sizes, if the KV cache that `config` asks for is larger than the memory that is free."""
    per_token = model.kv_bytes_per_token(dtype.itemsize)
    if config.paged:
        n_bytes, what = config.n_blocks * config.block_size * per_token, f"{config.n_blocks:,} blocks"
        what += f" of {config.block_size:,} tokens"
    else:
        n_bytes, what = config.max_running * model.max_context * per_token, f"{config.max_running:,} slots"
        what += f" of {model.max_context:,} tokens"
    host = config.host_blocks * config.block_size * per_token if config.preemption == "swap" else 0
    for needed, place, name in ((n_bytes, device, what), (host, torch.device("cpu"), f"{config.host_blocks:,} blocks")):
        free = free_memory(place)
        if free is not None and needed > free:
            raise ValueError(
                f"a KV cache of {name} takes {_size(needed)} of {place.type} memory, and {_size(free)} are free"
            )


def free_memory(device: torch.device) -> int | None:
    """Bytes that can still be taken; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":") for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"


@dataclass(frozen=True)
class PassCost:
    """A pass over n tokens of a prompt takes about `fixed` + n * `per_token` seconds."""

    fixed: float
    per_token: float

    @classmethod
    def between(cls, small: float, large: float) -> PassCost:
        """From the seconds of a pass over SMALL tokens and of one over LARGE."""
        per_token = max((large - small) / (LARGE - SMALL), large / LARGE / 100)
        return cls(max(small - SMALL * per_token, 0.0), per_token)

    def tokens_within(self, seconds: float, least: int, most: int) -> int:
        """How many tokens a pass of that length can hold; within `least` and `most`, whatever they take."""
        return max(least, min(most, int((seconds - self.fixed) / self.per_token)))


@torch.inference_mode()
def measure_passes(model: Llama, clock: Clock) -> PassCost:
    """Times short passes behind `BEHIND` tokens, as far as the model's context allows; the first compile kernels."""
    from reference_impl.cache.paged import PagedCache
    from reference_impl.model.fused import fused

    room = model.config.max_context - 1
    small, large = min(SMALL, room), min(LARGE, room)
    behind = max(0, min(BEHIND, room - large))
    cache = PagedCache(model.config, -(-(behind + large) // 16), 16, model.embed.dtype, model.embed.device)
    forward: Callable = fused(model)

    def seconds(seq: Hashable, tokens: Sequence[int]) -> float:
        start = clock()
        batch = cache.extend([(seq, tokens)])
        float(forward(batch, batch.last_rows)[0, 0])  # reading a logit waits for a GPU
        cache.commit(batch)
        return clock() - start

    cache.add("measured")
    for start in range(0, behind, LARGE):
        seconds("measured", [1] * min(LARGE, behind - start))
    found: dict[int, list[float]] = {small: [], large: []}
    for _ in range(3):
        for n in found:
            found[n].append(seconds("measured", [1] * n))
            cache.truncate("measured", behind)
    if small == large:
        return PassCost(0.0, min(found[small]) / small)
    return PassCost.between(min(found[small]), min(found[large]))
