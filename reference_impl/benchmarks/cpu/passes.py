"""What a forward pass over more tokens costs: a verification step of a few drafted tokens, and prompt chunks.

Prediction: below the ridge a pass takes as long as reading the weights, however many tokens it has; above it, 2 FLOPs
per parameter and token. Speculative decoding and chunked prefill depend on this curve. Whether its left end is flat
depends on the matrix kernel, so plain `F.linear` is measured beside the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from reference_impl import kernels
from reference_impl.benchmarks.cpu.decode import step_bytes
from reference_impl.benchmarks.cpu.setup import DTYPES, Bench
from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.benchmarks.harness.timing import Run, timed
from reference_impl.benchmarks.probe import probe
from reference_impl.cache.paged import PagedCache
from reference_impl.kernels.reference import REFERENCE
from reference_impl.model.fused import fused
from reference_impl.model.llama import Llama
from reference_impl.model.replay import RecordedPasses

CONTEXT = 128  # tokens that are in the cache already
VERIFY = 4  # tokens of a verification step: three drafted ones and the last accepted
VERIFY_COST = 1.4  # at most, in steps of one token
SIZES = (1, 2, VERIFY, 8, 16, 32, 64, 128, 256)


class Pass:
    """A pass over n new tokens of one sequence with CONTEXT tokens behind it. It is undone afterwards.

    `recorded`: short passes are recorded and replayed, as an engine does it.
    """

    def __init__(self, model: Llama, tokens: list[int], most: int, recorded: bool = False) -> None:
        self.model, self.tokens = RecordedPasses(fused(model)) if recorded else fused(model), tokens
        self.cache = PagedCache(model.config, -(-(CONTEXT + most) // 16), dtype=model.embed.dtype, prefix_sharing=False)
        self.cache.add("only")
        self.cache.commit(self.cache.extend([("only", tokens[:1] * CONTEXT)]))  # zeros in the cache cost the same

    @torch.inference_mode()
    def run(self, n: int, all_logits: bool) -> None:
        """`all_logits`: after every token, which a verification needs; a prompt chunk needs only its last token's."""
        batch = self.cache.extend([("only", self.tokens[:n])])
        self.model(batch, None if all_logits else batch.last_rows)
        self.cache.abort(batch)


@contextmanager
def plain_linear() -> Iterator[None]:
    """Inside it, every matrix product is PyTorch's own `F.linear`."""
    ours, fused = kernels.linear, kernels.norm_linear

    def plain(x: Tensor, weight: kernels.Matrix, bias: Tensor | None = None, *, backend: str | None = None) -> Tensor:
        return REFERENCE.linear(x, weight, bias)

    def in_parts(
        x: Tensor,
        delta: Tensor | None,
        norm: Tensor,
        eps: float,
        weight: kernels.Matrix,
        bias: Tensor | None = None,
        *,
        gated: bool = False,
        backend: str | None = None,
    ) -> tuple[Tensor, Tensor]:
        sums, rows = kernels.add_rms_norm(x, delta, norm, eps)
        out = plain(rows, weight, bias)
        return sums, kernels.silu_mul(out) if gated else out

    kernels.linear, kernels.norm_linear = plain, in_parts
    try:
        yield
    finally:
        kernels.linear, kernels.norm_linear = ours, fused


def run(bench: Bench) -> Section:
    sizes = SIZES[:5] if bench.quick else SIZES
    section = Section(
        "passes",
        f"A pass over n tokens of one sequence, {CONTEXT} tokens behind it",
        {"tokens": "tokens"}
        | {f"{dtype}_ms": f"{dtype} ms" for dtype in DTYPES}
        | {f"{dtype}_cost": f"{dtype} × one token" for dtype in DTYPES}
        | {"plain_cost": "plain F.linear fp32 × one token", "bound_cost": "predicted fp32 × one token"},
    )
    bench.say("passes")
    tokens = bench.prompts(1, max(sizes))[0]
    passes = {dtype: Pass(bench.model(dtype), tokens, max(sizes), recorded=True) for dtype in DTYPES}
    unfused = Pass(bench.model("fp32"), tokens, max(sizes))
    samples = bench.compare(
        {f"{dtype} {n}": timed(work(passes[dtype], n), bench.clock) for n in sizes for dtype in DTYPES}
        | {f"plain {n}": timed(work(unfused, n, plain=True), bench.clock) for n in sizes}
    )
    bound = _bound(bench)
    for n in sizes:
        row = {"tokens": n, "plain_cost": samples.ratio(f"plain {n}", "plain 1"), "bound_cost": bound(n) / bound(1)}
        for dtype in DTYPES:
            row[f"{dtype}_ms"] = samples.median(f"{dtype} {n}") * 1e3
            row[f"{dtype}_cost"] = samples.ratio(f"{dtype} {n}", f"{dtype} 1")
        section.rows.append(row)
    for dtype in DTYPES:
        cost = samples.ratio(f"{dtype} {VERIFY}", f"{dtype} 1")
        section.targets.append(
            Target(f"{dtype}: a pass over {VERIFY} tokens in passes over one", cost, VERIFY_COST, at_least=False)
        )
    section.notes.append(
        f"Up to {VERIFY * 2} tokens logits are computed after each of them (verification), beyond after the last only."
    )
    return section


def work(a_pass: Pass, n: int, plain: bool = False) -> Run:
    def once() -> float:
        if plain:
            with plain_linear():
                a_pass.run(n, all_logits=n <= 2 * VERIFY)
        else:
            a_pass.run(n, all_logits=n <= 2 * VERIFY)
        return 0.0

    return once


def _bound(bench: Bench) -> Callable[[int], float]:
    """n -> seconds on paper, from this machine's own bandwidth and matrix-product rate."""
    machine = probe("cpu", bench.clock, repeats=3)
    config = bench.config
    n_bytes = step_bytes(config, 1, CONTEXT, 4)
    return lambda n: max(n_bytes / machine.bandwidth, 2 * config.params_read_per_step * n / machine.peak_flops)
