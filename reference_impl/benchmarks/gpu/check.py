"""A GPU against its roofline: is the engine right there, and how near its limits does it run?

Prediction first, as everywhere: a decode step takes the bytes that it must read over the bandwidth that a large copy
shows on this very card; prefill takes its FLOPs over the rate of a large matrix product. The model has the shape of
Llama 3 8B and random weights, for speed does not depend on what a model knows. `gpu_correct` is run before.

    python -m reference_impl.benchmarks --gpu [--budget SECONDS] [--output FOLDER]
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from reference_impl.benchmarks import GPU_SECTIONS
from reference_impl.benchmarks.cpu.decode import step_bytes
from reference_impl.benchmarks.gpu import correct as gpu_correct
from reference_impl.benchmarks.gpu import quantized as gpu_quantized
from reference_impl.benchmarks.gpu import speculative as gpu_speculative
from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.benchmarks.harness.session import finish, new_result
from reference_impl.benchmarks.probe import GIB, copy_bandwidth, median_seconds
from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.bounds.hardware import GPUS, Gpu
from reference_impl.cache.paged import PagedCache
from reference_impl.common.clock import Clock
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.model.replay import Capture, DecodeGraphs

DRIVER_NAMES = {"h100-sxm": r"\bH100 80GB HBM3\b", "h200": r"\bH200$", "a100-80g": r"\bA100-SXM4-80GB\b"}
BATCHES = (1, 8, 32, 64)
CONTEXT = 2048  # tokens
PROMPTS = (512, 2048, 8192)  # tokens
DECODE_SHARE = 0.85  # of the copy bandwidth, at batch 1
PREFILL_SHARE = 0.5  # of the matrix-product rate, at 2,048 tokens


@dataclass(frozen=True)
class Ceilings:
    """What this card itself shows: bytes per second read and written by a copy, FLOP per second of a product."""

    copy_bandwidth: float
    matmul_rate: float


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


def main(budget: float, only: Sequence[str] | None, output: Path | None) -> int:
    """Status 0 where all is right, also where there is no GPU (one line says so); 1 where something is wrong."""
    if not torch.cuda.is_available():
        print("gpu-check: PyTorch finds no CUDA GPU here, so nothing was checked")
        return 0
    started = time.monotonic()

    def left() -> float:
        return budget - (time.monotonic() - started)

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", file=sys.stderr, flush=True)

    result = new_result("cuda")
    wanted = only or GPU_SECTIONS
    folder = output or Path(os.environ.get("OUT") or Path(__file__).parents[1] / "results")
    right = True
    if "correctness" in wanted:
        say("correctness")
        section, right = gpu_correct.run(left() / 2)
        result.sections.append(section)
    config = choose_model(torch.cuda.get_device_properties(0).total_memory)
    result.settings["model"] = config.name
    if left() > 60 and set(wanted) - {"correctness"}:
        say("ceilings")
        ceilings = measure_ceilings(torch.device("cuda"), time.perf_counter)
        result.settings["copy_bandwidth"] = ceilings.copy_bandwidth
        result.settings["matmul_rate"] = ceilings.matmul_rate
        say(f"{config.name} with random weights")
        subject = Subject(random_model(config))
        gpu = data_sheet(str(result.hardware["name"]))
        if "decode" in wanted:
            say("decode")
            result.sections.append(decode(subject, ceilings, gpu))
        if "prefill" in wanted and left() > 30:
            say("prefill")
            result.sections.append(prefill(subject, ceilings))
        if "speculative" in wanted and left() > 90 and config.name == "llama-3-8b":  # the draft has its vocabulary
            say("speculative")
            result.sections.append(gpu_speculative.speculative(subject.model, time.perf_counter))
        if "quantized" in wanted and left() > 60:
            say("quantized")
            del subject  # its memory is needed
            step = lambda model: _step_seconds(Subject(model), 1, CONTEXT)[0]
            make = partial(random_model, config)
            result.sections.append(gpu_quantized.quantized(make, step, ceilings.copy_bandwidth, CONTEXT))
    if len(result.sections) < len(set(wanted)):
        say(f"the budget of {budget:g} s did not reach for everything")
    finish(result, folder, say, only or ())
    return 0 if right else 1


def random_model(config: ModelConfig) -> Llama:
    """A model of this shape in bfloat16 on the GPU."""
    return Llama(config, torch.bfloat16, "cuda").randomize(torch.Generator("cuda").manual_seed(0))


def choose_model(memory_bytes: float) -> ModelConfig:
    """Llama 3 8B where it fits with the caches of the largest batch, else a smaller shape."""
    for name in ("llama-3-8b", "llama-3.2-1b"):
        config = MODELS[name]
        needed = 2 * config.n_params + BATCHES[-1] * CONTEXT * config.kv_bytes_per_token() + 4 * GIB
        if needed < memory_bytes:
            return config
    return MODELS["smollm2-135m"]


def data_sheet(name: str) -> Gpu | None:
    """The card of the data sheets that the driver calls by this name; None for any other, even a close relative."""
    return next((GPUS[key] for key, pattern in DRIVER_NAMES.items() if re.search(pattern, name)), None)


def measure_ceilings(device: torch.device, clock: Clock, n_bytes: int = 4 * GIB, n: int = 8192) -> Ceilings:
    """A copy within n_bytes and an n x n bfloat16 product of random numbers (constants run faster than real data)."""
    a, b = (torch.randn(n, n, dtype=torch.bfloat16, device=device) for _ in range(2))
    out = torch.empty_like(a)
    seconds = median_seconds(lambda: torch.mm(a, b, out=out), device, clock, 10)
    return Ceilings(copy_bandwidth(device, clock, 10, n_bytes), 2 * n**3 / seconds)


@torch.inference_mode()
def decode(
    subject: Subject, ceilings: Ceilings, gpu: Gpu | None, batches: Sequence[int] = BATCHES, context: int = CONTEXT
) -> Section:
    """The batch table, measured with CUDA graphs beside the paper's numbers for the card of the data sheet."""
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
    for row in paper:
        seconds, eager = _step_seconds(subject, row.batch, context)
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
    section.notes.append(
        f"On paper: all weights and caches over the bandwidth of {of}. Shares: over the copy bandwidth measured here, "
        f"{ceilings.copy_bandwidth / 1e9:,.0f} GB/s, and the bytes read, an untied input table left out."
    )
    return section


def _step_seconds(subject: Subject, batch: int, context: int) -> tuple[float, float]:
    """Seconds of a decode step of `batch` sequences, replayed and launched one by one."""
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
def prefill(subject: Subject, ceilings: Ceilings, prompts: Sequence[int] = PROMPTS) -> Section:
    """One prompt in one pass: FLOPs that it really does over its time, beside the matrix-product rate."""
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
    section.notes.append(
        f"The matmul rate measured here: {ceilings.matmul_rate / 1e12:,.0f} TFLOP/s. FLOPs: 2 per token and parameter "
        "of the layers, causal attention, and the head for the last token only."
    )
    return section


def prefill_work(config: ModelConfig, n_tokens: int) -> float:
    """FLOPs of a prefill that computes logits for its last token only: fewer than 2 P T, which counts the tables."""
    tables = config.embedding_params * (1 if config.tied else 2)
    attention = arithmetic.attention_flops(config.n_layers, config.n_heads, config.head_dim, n_tokens)
    return 2 * (config.n_params - tables) * n_tokens + 2 * config.embedding_params + attention
