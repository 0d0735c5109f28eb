"""The engine's switches. Each may change how fast an answer comes, and none may change the answer.

Lessons turn one switch and measure again. Tests turn all of them and compare the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import torch

    from reference_impl.bounds.config import ModelConfig
    from reference_impl.cache.contiguous import ContiguousCache
    from reference_impl.cache.paged import PagedCache

Batching = Literal["continuous", "static"]
Preemption = Literal["recompute", "swap"]


@dataclass(frozen=True)
class EngineConfig:
    """Limits and switches of one engine. ValueError for limits that cannot work together."""

    max_running: int = 32  # sequences in a batch, at most
    token_budget: int = 512  # tokens in one forward pass, at most
    chunk_size: int | None = None  # prompt tokens of one request in one pass, at most; None: what the budget leaves
    batching: Batching = "continuous"
    preemption: Preemption = "recompute"
    paged: bool = True  # False: one contiguous slot of the full context for each running sequence
    block_size: int = 16  # tokens
    n_blocks: int = 1024  # of the paged cache
    prefix_sharing: bool = True
    host_blocks: int = 0  # room in host memory for `preemption="swap"`, in blocks
    recorded: bool = True  # fused steps, short passes recorded once and replayed (`model.replay`); else `Llama` itself
    keep_logits: bool = False  # outputs carry the logits of their tokens (lessons, tests)
    debug: bool = False  # freed blocks are filled with NaN, swapped ones are compared by checksum
    seed: int = 0  # for requests that bring no seed of their own

    def __post_init__(self) -> None:
        for name in ("max_running", "token_budget", "chunk_size", "block_size", "n_blocks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name, kind in (("batching", Batching), ("preemption", Preemption)):
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"{name} must be one of {', '.join(get_args(kind))}, got {getattr(self, name)!r}")
        if self.token_budget < self.max_running:
            raise ValueError(
                f"a budget of {self.token_budget} tokens a step cannot decode {self.max_running} running sequences: "
                "raise token_budget or lower max_running"
            )
        if self.preemption == "swap" and not (self.paged and self.host_blocks > 0):
            raise ValueError("preemption by swap needs a paged cache and host_blocks > 0")

    def build_cache(
        self, model: ModelConfig, dtype: torch.dtype, device: str | torch.device
    ) -> ContiguousCache | PagedCache:
        """An empty cache for `model`, of the size and kind that these switches ask for."""
        from reference_impl.cache.contiguous import ContiguousCache
        from reference_impl.cache.paged import PagedCache

        if self.paged:
            return PagedCache(model, self.n_blocks, self.block_size, dtype, device, self.prefix_sharing, self.debug)
        return ContiguousCache(model, self.max_running, model.max_context, dtype, device)
