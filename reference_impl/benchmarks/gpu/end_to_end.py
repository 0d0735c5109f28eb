"""The engine end to end on a GPU: how much time does a step lose between the kernels?

In a step the engine schedules, sends index tensors to the GPU, replays the graph, chooses tokens, and fetches them.
Prediction: the step takes as long as the replayed graph alone, at the same batch and context, because work on the host
should be hidden.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

from reference_impl.benchmarks.harness.result import Save, Section, Target, forget
from reference_impl.common.clock import Clock
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama

BATCHES = (1, 32)
PROMPT, ANSWER = 512, 64  # tokens
BLOCK_SIZE = 16
WITHIN = 1.05  # of the replayed step
SETTINGS = {"greedy": SamplingParams(), "top-p 0.9": SamplingParams(temperature=1.0, top_p=0.9, seed=1)}


def end_to_end(
    model: Llama,
    replayed: Callable[[int, int], float],
    clock: Clock,
    batches: Sequence[int] = BATCHES,
    n_prompt: int = PROMPT,
    n_tokens: int = ANSWER,
    save: Save = forget,
) -> Section:
    """The engine's decode step by the clock, beside `replayed(batch, context)`, the seconds of the graph alone."""
    section = Section(
        "gpu_engine",
        f"The engine end to end: {model.config.name}, prompts of {n_prompt} tokens, answers of {n_tokens}",
        {
            "batch": "batch",
            "tokens": "tokens chosen",
            "milliseconds": "ms/step",
            "replayed_milliseconds": "graph alone, ms",
            "ratio": "step/graph",
            "tokens_per_second": "token/s",
        },
    )
    for batch in batches:
        graph = replayed(batch, n_prompt + n_tokens // 2)
        for name, sampling in SETTINGS.items():
            step = step_seconds(model, batch, n_prompt, n_tokens, sampling, clock)
            section.rows.append(
                {
                    "batch": batch,
                    "tokens": name,
                    "milliseconds": step * 1e3,
                    "replayed_milliseconds": graph * 1e3,
                    "ratio": step / graph,
                    "tokens_per_second": batch / step,
                }
            )
            if name == "greedy":
                what = f"batch {batch}, greedy: the engine's step over the graph's"
                section.targets.append(Target(what, step / graph, WITHIN, at_least=False))
            save(section)
    return section


def step_seconds(
    model: Llama, batch: int, n_prompt: int, n_tokens: int, sampling: SamplingParams, clock: Clock
) -> float:
    """Median seconds of the engine's steps in which every request of the batch gets its next token."""
    n_blocks = batch * -(-(n_prompt + n_tokens) // BLOCK_SIZE)
    config = EngineConfig(
        max_running=batch, token_budget=max(512, batch), block_size=BLOCK_SIZE, n_blocks=n_blocks, prefix_sharing=False
    )
    engine = Engine.for_llama(model, config, clock=clock)
    numbers = torch.Generator().manual_seed(batch)
    for i in range(batch):
        prompt = torch.randint(model.config.vocab_size, (n_prompt,), generator=numbers).tolist()
        engine.add(Request(i, tuple(prompt), n_tokens, sampling))
    times = []
    while not engine.idle:
        before = engine.stats.n_prefill_tokens
        started = clock()
        outputs = engine.step()  # the tokens are on the host when it returns
        if len(outputs) == batch and engine.stats.n_prefill_tokens == before:
            times.append(clock() - started)
    if len(times) < 2:
        raise ValueError(f"answers of {n_tokens} tokens leave no step in which all {batch} requests decode")
    return statistics.median(times[1:])  # the first one records the graph
