"""A GPU against its roofline: how near to its limits are a decode step and a prefill?

Prediction: a decode step takes the bytes that it must read over the bandwidth that a large copy shows on this very
card, and a prefill takes its FLOPs over the rate of a large matrix product. The model has the shape of Llama 3 8B and
random weights, since speed does not depend on what a model knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from reference_impl.benchmarks.cpu.decode import step_bytes
from reference_impl.benchmarks.gpu.card import BATCHES, CONTEXT, Ceilings
from reference_impl.benchmarks.harness.result import Save, Section, Target, forget
from reference_impl.benchmarks.probe import median_seconds
from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import ModelConfig
from reference_impl.bounds.hardware import Gpu
from reference_impl.cache.paged import PagedCache
from reference_impl.common.clock import Clock
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.model.replay import Capture, DecodeGraphs

PROMPTS = (512, 2048, 8192)  # tokens
DECODE_SHARE = 0.85  # of the copy bandwidth, at batch 1
PREFILL_SHARE = 0.5  # of the matrix-product rate, at 2,048 tokens


@dataclass
class Subject:
    """What is measured: a model on a device, and how to time it."""

    model: Llama
    clock: Clock = time.perf_counter
    capture: Capture | None = None  # None: a CUDA graph
    repeats: int = 20

    @property
    def device(self) -> torch.device:
        return self.model.embed.device

    def seconds(self, work: Callable[[], object]) -> float:
        return median_seconds(work, self.device, self.clock, self.repeats)


@torch.inference_mode()
def decode(
    subject: Subject,
    ceilings: Ceilings,
    gpu: Gpu | None,
    batches: Sequence[int] = BATCHES,
    context: int = CONTEXT,
    save: Save = forget,
) -> Section:
    """The batch table, measured with CUDA graphs, beside the paper's numbers for the card of the data sheet."""
    config = subject.model.config
    bandwidth = gpu.bandwidth if gpu is not None else ceilings.copy_bandwidth
    of = f"{gpu.name}'s data sheet" if gpu is not None else "the measured copy bandwidth (no data sheet for this card)"
    itemsize = subject.model.embed.element_size()
    paper = arithmetic.batch_table(
        batches, context, itemsize * config.n_params, config.kv_bytes_per_token(itemsize), bandwidth
    )
    section = Section(
        "gpu_decode",
        f"Decode of {config.name}, bf16, random weights, {context} tokens of context, by CUDA graphs",
        {
            "batch": "batch",
            "milliseconds": "ms/step",
            "paper_milliseconds": "ms on paper",
            "tokens_per_second": "token/s",
            "paper_tokens_per_second": "token/s on paper",
            "share": "of copy bandwidth",
            "eager_milliseconds": "ms without graphs",
        },
    )
    section.notes.append(
        f"On paper: all weights and caches over the bandwidth of {of}. Shares: over the copy bandwidth measured here, "
        f"{ceilings.copy_bandwidth / 1e9:,.0f} GB/s, and the bytes read, an untied input table left out."
    )
    for row in paper:
        seconds, eager = step_seconds(subject, row.batch, context)
        share = step_bytes(config, row.batch, context, itemsize) / seconds / ceilings.copy_bandwidth
        section.rows.append(
            {
                "batch": row.batch,
                "milliseconds": seconds * 1e3,
                "paper_milliseconds": row.seconds * 1e3,
                "tokens_per_second": row.batch / seconds,
                "paper_tokens_per_second": row.tokens_per_second,
                "share": share,
                "eager_milliseconds": eager * 1e3,
            }
        )
        if row.batch == 1:
            section.targets.append(Target("batch 1: share of the copy bandwidth", share, DECODE_SHARE))
        save(section)
    return section


def step_seconds(subject: Subject, batch: int, context: int) -> tuple[float, float]:
    """Seconds of a decode step of `batch` sequences: (replayed, launched kernel by kernel)."""
    model = FusedLlama(subject.model)
    width = -(-context // 16)
    cache = PagedCache(model.config, batch * width, 16, subject.model.embed.dtype, subject.device, prefix_sharing=False)
    for tensor in (cache.storage.k, cache.storage.v):
        tensor.normal_()
    for seq in range(batch):
        cache.add(seq)
        cache.commit(cache.extend([(seq, [0] * (context - 1))]))
    step = cache.extend([(seq, [seq + 1]) for seq in range(batch)])
    graphs = DecodeGraphs(model, cache.storage, width, [batch], subject.capture)
    replayed = subject.seconds(lambda: graphs.run(step, (batch, batch, width)))
    return replayed, subject.seconds(lambda: model(step, step.last_rows))


@torch.inference_mode()
def prefill(subject: Subject, ceilings: Ceilings, prompts: Sequence[int] = PROMPTS, save: Save = forget) -> Section:
    """One prompt in one pass: the FLOPs that it really does over its time, beside the matrix-product rate."""
    config = subject.model.config
    section = Section(
        "gpu_prefill",
        f"Prefill of {config.name}, one prompt in one pass",
        {
            "tokens": "tokens",
            "milliseconds": "ms",
            "tokens_per_second": "token/s",
            "tflops": "TFLOP/s",
            "share": "of the matmul rate",
        },
    )
    section.notes.append(
        f"The matmul rate measured here: {ceilings.matmul_rate / 1e12:,.0f} TFLOP/s. FLOPs: 2 per token and parameter "
        "of the layers, causal attention, and the head for the last token only."
    )
    for n in prompts:
        cache = PagedCache(config, -(-n // 16), 16, subject.model.embed.dtype, subject.device, prefix_sharing=False)
        cache.add("only")
        numbers = torch.Generator().manual_seed(n)
        tokens = torch.randint(config.vocab_size, (n,), generator=numbers).tolist()
        batch = cache.extend([("only", tokens)])
        seconds = subject.seconds(partial(FusedLlama(subject.model), batch, batch.last_rows))
        rate = prefill_work(config, n) / seconds
        section.rows.append(
            {
                "tokens": n,
                "milliseconds": seconds * 1e3,
                "tokens_per_second": n / seconds,
                "tflops": rate / 1e12,
                "share": rate / ceilings.matmul_rate,
            }
        )
        if n == 2048:
            share = rate / ceilings.matmul_rate
            section.targets.append(Target("2,048 tokens: share of the matmul rate", share, PREFILL_SHARE))
        save(section)
    return section


def prefill_work(config: ModelConfig, n_tokens: int) -> float:
    """FLOPs of a prefill with logits for its last token only: fewer than 2 P T, which counts the whole tables."""
    tables = config.embedding_params * (1 if config.tied else 2)
    attention = arithmetic.attention_flops(config.n_layers, config.n_heads, config.head_dim, n_tokens)
    return 2 * (config.n_params - tables) * n_tokens + 2 * config.embedding_params + attention
