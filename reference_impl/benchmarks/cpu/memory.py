"""KV memory: bytes that sequences have reserved and not filled, in blocks and in contiguous slots.

Prediction: with blocks, less than one block a sequence; with contiguous slots, the whole difference between a sequence
and the longest one allowed (Kwon et al. 2023, figure 2). The caches count tokens; no model runs and nothing is timed.
"""

from __future__ import annotations

import random

import torch

from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.cache.paged import PagedCache

SEQUENCES = 12
LONGEST = 512  # tokens
BLOCKS = (16, 64)  # tokens


def run(bench: Bench) -> Section:
    section = Section(
        "memory",
        f"KV memory of {SEQUENCES} sequences of up to {LONGEST} tokens, {bench.config.name}, bf16",
        {
            "cache": "cache",
            "tokens": "tokens",
            "token_bytes": "bytes/token",
            "reserved_mib": "reserved, MiB",
            "waste_mib": "empty, MiB",
            "waste_share": "share",
            "waste_per_sequence": "empty tokens/sequence",
        },
    )
    bench.say("KV memory")
    numbers = random.Random(0)
    lengths = [round(8 * (LONGEST / 8) ** numbers.random()) for _ in range(SEQUENCES)]
    caches: dict[str, PagedCache | ContiguousCache] = {
        f"blocks of {size}": PagedCache(
            bench.config, SEQUENCES * -(-LONGEST // size), size, torch.bfloat16, prefix_sharing=False
        )
        for size in BLOCKS
    }
    caches["contiguous slots"] = ContiguousCache(bench.config, SEQUENCES, LONGEST, torch.bfloat16)
    for name, cache in caches.items():
        for i, length in enumerate(lengths):
            cache.add(i)
            cache.commit(cache.extend([(i, [0] * length)]))
        usage = cache.usage()
        waste = usage.reserved_tokens - usage.tokens
        section.rows.append(
            {
                "cache": name,
                "tokens": usage.tokens,
                "token_bytes": usage.bytes_per_token,
                "reserved_mib": usage.reserved_tokens * usage.bytes_per_token / 2**20,
                "waste_mib": usage.waste_bytes / 2**20,
                "waste_share": waste / usage.reserved_tokens,
                "waste_per_sequence": waste / SEQUENCES,
            }
        )
        if isinstance(cache, PagedCache):
            section.targets.append(
                Target(
                    f"{name}: waste a sequence, in blocks", waste / SEQUENCES / cache.block_size, 1.0, at_least=False
                )
            )
    return section
