"""Fewer bits a weight: does the promised speed-up arrive in tokens a second, and is a second token still nearly free?

Prediction: a step takes as long as reading its bytes, so int8 should be almost twice and int4 almost four times as fast
as bf16. The rest of a step (attention, norms, the work on each weight) does not shrink. All matrices and the output
head are rounded in groups of 128 with scales in float32, and the kernel rounds activations to 16 bits. The peer is
llama.cpp on the same values as Q8_0: groups of 32, scales in float16, activations rounded to 8 bits.
"""

from __future__ import annotations

from functools import partial

import torch

from reference_impl.benchmarks.cpu.decode import bandwidth, step_bytes
from reference_impl.benchmarks.cpu.passes import VERIFY, Pass, work
from reference_impl.benchmarks.cpu.peers import MissingPeerError, Ours, Peer, start
from reference_impl.benchmarks.cpu.setup import DTYPES, Bench
from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.benchmarks.harness.timing import Run, timed
from reference_impl.model.llama import Llama
from reference_impl.quantization.model import bytes_read_per_step, quantize_model

BITS = (8, 4)
GROUP_SIZE = 128
BATCHES = (1, 4)
PROMPT, ANSWER = 32, 24  # tokens
FASTER_THAN_FLOAT = 1.6  # int8 at batch 1, times the faster of fp32 and bf16
BATCH_COST = 1.3  # int8, a step of four sequences in steps of one
OF_LLAMA_CPP = 0.9  # of its token/s with Q8_0


def run(bench: Bench) -> Section:
    section = Section(
        "quantized",
        f"Decode of {bench.config.name} with quantized matrices (groups of {GROUP_SIZE}), greedy, short contexts",
        {
            "batch": "batch",
            "engine": "engine",
            "weights": "weights",
            "megabytes": "MB read",
            "predicted_ms": "predicted ms",
            "milliseconds": "ms/step",
            "tokens_per_second": "token/s",
            "vs_float": "× our faster float",
            "spread": "spread",
        },
    )
    bench.say("quantized: int8 and int4")
    models = {dtype: bench.model(dtype) for dtype in DTYPES}
    models |= {f"int{bits}": quantized(bench, bits) for bits in BITS}
    contestants: dict[tuple[str, str, int], Peer] = {
        ("this engine", name, batch): Ours(model, bench.clock)
        for name, model in models.items()
        for batch in (BATCHES if name.startswith("int") else (1,))
    }
    if "llama.cpp" in bench.peers:
        try:
            contestants["llama.cpp", "Q8_0", 1] = start("llama.cpp", "int8", bench)
        except MissingPeerError as reason:
            section.notes.append(f"Missing: llama.cpp Q8_0: {reason}.")
    n_tokens = ANSWER // 2 if bench.quick else ANSWER
    runs: dict[str, Run] = {"bandwidth": bandwidth(bench.clock)}
    for (engine, name, batch), peer in contestants.items():
        prompts = bench.prompts(batch, PROMPT, seed=batch)
        runs[f"{engine} {name} {batch}"] = partial(peer.step_seconds, prompts, n_tokens)
    check = Pass(models["int8"], bench.prompts(1, 2 * VERIFY)[0], 2 * VERIFY, recorded=True)
    runs |= {f"check {n}": timed(work(check, n), bench.clock) for n in (1, VERIFY, VERIFY + 1)}
    samples = bench.compare(runs)
    section.notes += [f"Missing: {name}: {reason}." for name, reason in samples.failed.items()]

    ceiling = max(samples.values["bandwidth"])
    fastest = min(("fp32", "bf16"), key=lambda name: samples.median(f"this engine {name} 1"))
    base = f"this engine {fastest} 1"
    for engine, name, batch in contestants:
        key = f"{engine} {name} {batch}"
        if key not in samples:
            continue
        n_bytes = _step_bytes(models, name, batch, PROMPT + n_tokens / 2) if engine == "this engine" else None
        section.rows.append(
            {
                "batch": batch,
                "engine": engine,
                "weights": name,
                "megabytes": None if n_bytes is None else n_bytes / 1e6,
                "predicted_ms": None if n_bytes is None else n_bytes / ceiling * 1e3,
                "milliseconds": samples.median(key) * 1e3,
                "tokens_per_second": batch / samples.median(key),
                "vs_float": batch * samples.ratio(base, key),
                "spread": samples.spread(key),
                "bandwidth": ceiling,
            }
        )
    int8, peer_key = "this engine int8 1", "llama.cpp Q8_0 1"
    against_peer = samples.ratio(peer_key, int8) if peer_key in samples else None
    section.targets = [
        Target(f"int8, batch 1: token/s over our {fastest}", samples.ratio(base, int8), FASTER_THAN_FLOAT),
        _cheap("int8: a step of batch 4 in steps of batch 1", samples.ratio("this engine int8 4", int8)),
        Target("int8, batch 1: token/s over llama.cpp's Q8_0", against_peer, OF_LLAMA_CPP),
        *(
            _cheap(f"int8: a pass over {n} tokens in passes over one", samples.ratio(f"check {n}", "check 1"))
            for n in (VERIFY, VERIFY + 1)
        ),
    ]
    predicted = _step_bytes(models, fastest, 1, PROMPT) / _step_bytes(models, "int8", 1, PROMPT)
    section.notes.append(f"By bytes alone int8 would be {predicted:.2f} times as fast as {fastest}.")
    return section


def quantized(bench: Bench, bits: int) -> Llama:
    """The bench's model with its matrices and head in `bits` bits."""
    return quantize_model(bench.load(torch.float32), bits, GROUP_SIZE)


def _cheap(what: str, cost: float) -> Target:
    return Target(what, cost, BATCH_COST, at_least=False)


def _step_bytes(models: dict[str, Llama], name: str, batch: int, context: float) -> float:
    model = models[name]
    if name in DTYPES:
        return step_bytes(model.config, batch, context, DTYPES[name].itemsize)
    cache = batch * context * model.config.kv_bytes_per_token(model.embed.element_size())
    return bytes_read_per_step(model) + batch * model.config.d_model * model.embed.element_size() + cache
