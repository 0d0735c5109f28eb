"""Decode: tokens a second at batch 1, 8 and 32, beside transformers and other engines on the same weights.

Prediction: a step reads every weight once, and each sequence's keys and values. (A tied output head is the embedding
table, of which the input needs one row a sequence.) No step can take less time than these bytes at the bandwidth that
this machine shows in the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from reference_impl.benchmarks.cpu.peers import MissingPeerError, Ours, Peer, start
from reference_impl.benchmarks.cpu.setup import DTYPES, Bench
from reference_impl.benchmarks.harness.result import Row, Section, Target
from reference_impl.benchmarks.harness.timing import Run, Samples
from reference_impl.benchmarks.probe import GIB, read_bandwidth
from reference_impl.bounds.config import ModelConfig

BATCHES = (1, 8, 32)
PROMPT = {1: 32, 8: 32, 32: 16}  # tokens, by batch
ANSWER = {1: 24, 8: 16, 32: 10}  # tokens, by batch
CONTESTANTS = (
    ("this engine", "fp32"),
    ("this engine", "bf16"),
    ("transformers", "fp32"),
    ("transformers", "bf16"),
    ("llama.cpp", "fp32"),
    ("llama.cpp", "bf16"),
    ("vllm", "fp32"),
    ("vllm", "bf16"),
)
TOO_SLOW = {("transformers", "bf16"): 8}  # largest batch, since without bf16 instructions its prefill takes minutes
BEAT_TRANSFORMERS = {1: 1.5, 8: 1.0, 32: 1.0}  # at least, in tokens per second
SHARE_OF_BANDWIDTH = 0.6  # at batch 1


def step_bytes(config: ModelConfig, batch: int, context: float, bytes_per_value: int) -> float:
    """Bytes that a decode step must read: the weights once, and for each sequence an input row and its KV cache."""
    rows = 0 if config.tied else batch * config.d_model  # the rows of a tied table are among the weights already
    cache = batch * context * config.kv_bytes_per_token(bytes_per_value)
    return (config.params_read_per_step + rows) * bytes_per_value + cache


def run(bench: Bench) -> Section:
    section = Section(
        "decode",
        f"Decode of {bench.config.name}: seconds of a step, greedy, short contexts",
        {
            "batch": "batch",
            "engine": "engine",
            "dtype": "weights",
            "milliseconds": "ms/step",
            "tokens_per_second": "token/s",
            "vs_transformers": "× transformers fp32",
            "share": "of bandwidth",
            "spread": "spread",
        },
    )
    contestants = _start(bench, section)
    for batch in BATCHES[:2] if bench.quick else BATCHES:
        bench.say(f"decode, batch {batch}")
        _one_batch(bench, section, contestants, batch)
    section.notes.append(
        "A step's share of bandwidth is the bytes it must read over its time and the bandwidth that summing 256 MiB "
        "showed at best in the same rounds (above 1: the machine was too busy to tell). "
        "The spread is largest minus smallest over the median. "
        "llama.cpp's 16-bit file is F16. vLLM's step is a difference of two answers."
    )
    return section


def _start(bench: Bench, section: Section) -> dict[tuple[str, str], Peer]:
    """Every contestant that runs here. The section's notes name the others."""
    ready: dict[tuple[str, str], Peer] = {}
    missing: dict[str, None] = {}
    for name, dtype in CONTESTANTS:
        if name not in ("this engine", *bench.peers):
            continue
        try:
            ready[name, dtype] = (
                Ours(bench.model(dtype), bench.clock) if name == "this engine" else start(name, dtype, bench)
            )
        except MissingPeerError as reason:
            missing[f"Missing: {name} {dtype}: {reason}."] = None
    section.notes += missing
    return ready


def _one_batch(bench: Bench, section: Section, contestants: dict[tuple[str, str], Peer], batch: int) -> None:
    n_tokens = max(4, ANSWER[batch] // 2) if bench.quick else ANSWER[batch]
    prompts = bench.prompts(batch, PROMPT[batch], seed=batch)

    def decode(peer: Peer) -> Run:
        return lambda: peer.step_seconds(prompts, n_tokens)

    present = {key: peer for key, peer in contestants.items() if batch <= TOO_SLOW.get(key, batch)}
    runs: dict[str, Run] = {f"{name} {dtype}": decode(peer) for (name, dtype), peer in present.items()}
    samples = bench.compare({"bandwidth": bandwidth(bench.clock)} | runs)
    section.notes += [f"Missing: {name} at batch {batch}: {reason}." for name, reason in samples.failed.items()]
    base = "transformers fp32"
    for name, dtype in contestants:
        key = f"{name} {dtype}"
        if key in samples:
            section.rows.append(_row(bench, samples, batch, name, dtype, n_tokens))
    for dtype in DTYPES:
        key = f"this engine {dtype}"
        peer = samples.ratio(base, key) if key in samples and base in samples else None
        if dtype == "fp32":
            section.targets.append(
                Target(f"batch {batch}, fp32: token/s over transformers'", peer, BEAT_TRANSFORMERS[batch])
            )
        if batch == 1 and key in samples:
            share = next(r["share"] for r in section.rows if (r["engine"], r["dtype"]) == ("this engine", dtype))
            valid = share if share <= 1 else None  # a step faster than its bound shows that the ceiling is wrong
            section.targets.append(Target(f"batch 1, {dtype}: share of read bandwidth", valid, SHARE_OF_BANDWIDTH))


def _row(bench: Bench, samples: Samples, batch: int, name: str, dtype: str, n_tokens: int) -> Row:
    key, base = f"{name} {dtype}", "transformers fp32"
    seconds = samples.median(key)
    n_bytes = step_bytes(bench.config, batch, PROMPT[batch] + n_tokens / 2, DTYPES[dtype].itemsize)
    ceiling = max(samples.values["bandwidth"])  # the best that the machine showed in any round
    return {
        "batch": batch,
        "engine": name,
        "dtype": dtype,
        "milliseconds": seconds * 1e3,
        "tokens_per_second": batch / seconds,
        "vs_transformers": samples.ratio(base, key) if base in samples else None,
        "share": n_bytes / seconds / ceiling,
        "spread": samples.spread(key),
        "bandwidth": ceiling,
    }


def bandwidth(clock: Callable[[], float]) -> Run:
    """Bytes per second at which this machine reads, measured as one more contestant."""
    return lambda: read_bandwidth(torch.device("cpu"), clock, repeats=3, n_bytes=GIB // 4)
