"""Continuous against static batching: the same requests, arriving at once, through the same engine.

Prediction: `bounds.batching` counts the steps on paper, and the engine must take exactly that many. Whether fewer steps
also mean less time depends on what a step of a fuller batch costs.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from functools import partial
from typing import get_args

from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.harness.result import Section
from reference_impl.bounds import batching as paper
from reference_impl.engine.config import Batching, EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request

SLOTS = 8
PROMPT = 8  # tokens


@dataclass(frozen=True)
class Outcome:
    n_steps: int
    seconds: float
    mean_finish: float  # seconds after all requests arrived
    mean_finish_steps: float


def workload(n_requests: int, seed: int = 0) -> list[int]:
    """Answer lengths (4 to 48 tokens, log-uniform): most are short and a few long, as in real traffic."""
    numbers = random.Random(seed)
    return [round(4 * 12 ** numbers.random()) for _ in range(n_requests)]


def run(bench: Bench) -> Section:
    lengths = workload(12 if bench.quick else 32)
    section = Section(
        "batching",
        f"{len(lengths)} requests of {min(lengths)} to {max(lengths)} tokens on {SLOTS} slots, all arriving at once",
        {
            "batching": "batching",
            "steps": "steps",
            "paper_steps": "steps on paper",
            "utilization": "slots used",
            "seconds": "s",
            "tokens_per_second": "token/s",
            "mean_finish_steps": "mean finish, steps",
            "paper_mean_finish_steps": "mean on paper",
            "mean_finish": "mean finish, s",
        },
    )
    bench.say("batching")
    found: dict[str, list[Outcome]] = {kind: [] for kind in get_args(Batching)}

    def serve(kind: Batching) -> float:
        found[kind].append(_serve(bench, kind, lengths))
        return found[kind][-1].seconds

    bench.model("fp32")
    samples = bench.compare({kind: partial(serve, kind) for kind in get_args(Batching)}, warm_up=False)  # runs are long
    finish = {
        "static": paper.static_batching(lengths, SLOTS),
        "continuous": paper.continuous_batching(lengths, SLOTS),
    }
    for kind, outcomes in found.items():
        seconds = samples.median(kind)
        section.rows.append(
            {
                "batching": kind,
                "steps": outcomes[-1].n_steps,
                "paper_steps": max(finish[kind]),
                "utilization": paper.slot_utilization(lengths, SLOTS, finish[kind]),
                "seconds": seconds,
                "tokens_per_second": sum(lengths) / seconds,
                "mean_finish_steps": outcomes[-1].mean_finish_steps,
                "paper_mean_finish_steps": statistics.mean(finish[kind]),
                "mean_finish": statistics.median(outcome.mean_finish for outcome in outcomes),
            }
        )
    section.notes.append(
        f"On paper continuous batching is {max(finish['static']) / max(finish['continuous']):.2f} times as fast, "
        f"measured {samples.ratio('static', 'continuous'):.2f}."
    )
    return section


def _serve(bench: Bench, kind: Batching, lengths: list[int]) -> Outcome:
    blocks = SLOTS * (-(-(PROMPT + max(lengths)) // 16))
    config = EngineConfig(max_running=SLOTS, batching=kind, n_blocks=blocks, prefix_sharing=False)
    engine = Engine.for_llama(bench.model("fp32"), config, clock=bench.clock)
    start = bench.clock()
    for i, (prompt, length) in enumerate(zip(bench.prompts(len(lengths), PROMPT), lengths, strict=True)):
        engine.add(Request(i, tuple(prompt), max_tokens=length, arrival=start))
    n_steps, finish, finish_steps = 0, [], []
    while not engine.idle:
        outputs = engine.step()
        n_steps += 1
        ended = sum(output.finish is not None for output in outputs)
        finish += [bench.clock() - start] * ended
        finish_steps += [n_steps] * ended
    return Outcome(n_steps, finish[-1], statistics.mean(finish), statistics.mean(finish_steps))
