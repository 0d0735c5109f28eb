"""Tokens per second of each format: one decode step at batch 1, all formats taking turns on the same machine.

Speed depends on the bytes that a step reads, so on bits and group size, not on the method that chose the integers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from reference_impl.benchmarks.cpu.steps import step
from reference_impl.benchmarks.harness.timing import interleave, timed
from reference_impl.checkpoints import weights
from reference_impl.common.clock import Clock
from reference_impl.quantization.calibrate import Recipe
from reference_impl.quantization.model import quantize_model

BEHIND = 64  # tokens in the cache: a short context, so that a step reads little but weights
WITH_KERNELS = (8, 4)  # bits


def decode_rates(
    source: str, recipes: Sequence[Recipe], rounds: int = 9, clock: Clock = time.perf_counter
) -> dict[tuple[int, int | None] | None, float]:
    """Tokens per second by (bits, group size); None stands for the float model, with bfloat16 weights.

    The median of `rounds`. Embeddings and head stay floats here, as in the table of quality. Formats without a kernel
    of their own are left out.
    """
    formats = dict.fromkeys((r.bits, r.group_size) for r in recipes if r.bits in WITH_KERNELS)
    plain = weights.load(source, torch.bfloat16).model
    steps: dict[str, Callable[[], None]] = {"float": step(plain, behind=BEHIND, recorded=True)}
    for bits, group_size in formats:
        model = weights.load(source, torch.bfloat16).model
        steps[f"{bits} {group_size}"] = step(
            quantize_model(model, bits, group_size, head=False, progress=False), behind=BEHIND, recorded=True
        )
    found = interleave({name: timed(run, clock) for name, run in steps.items()}, rounds, clock)
    rates: dict[tuple[int, int | None] | None, float] = {None: 1 / found.median("float")}
    return rates | {one: 1 / found.median(f"{one[0]} {one[1]}") for one in formats}
