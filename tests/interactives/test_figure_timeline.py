"""The batching timeline decides as the engine's scheduler does, and its steps are those of batching on paper."""

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from figure_logic import call, gpu, model, run

from interactives.generate import workload
from reference_impl.bounds.arithmetic import attention_flops
from reference_impl.bounds.batching import continuous_batching, static_batching
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.request import FinishReason, Request, RequestState
from reference_impl.engine.scheduler import Scheduler

WHOLE = 10**9  # a token budget that no prompt reaches
MODEL, CARD = "llama-3-8b", "a100-80g"


class RoomyCache:
    """Only the lengths: a cache that is never full."""

    def __init__(self) -> None:
        self.lengths: dict[Hashable, int] = {}

    def add(self, seq: Hashable, tokens: Sequence[int] = ()) -> int:
        self.lengths[seq] = 0
        return 0

    def length(self, seq: Hashable) -> int:
        return self.lengths[seq]

    def can_extend(self, counts: Sequence[tuple[Hashable, int]]) -> bool:
        return True

    def extend(self, chunks: Sequence[tuple[Hashable, Sequence[int]]]) -> None:
        for seq, tokens in chunks:
            self.lengths[seq] += len(tokens)

    def commit(self, batch: None) -> None:
        pass

    def free(self, seq: Hashable) -> None:
        del self.lengths[seq]


def pass_seconds(chunks: Sequence[tuple[int, int]]) -> float:
    """A pass over tokens from..to-1 of each request: in the linear layers, then in attention, bytes or FLOPs."""
    config, card = MODELS[MODEL], GPUS[CARD]
    python = Deployment(config, card)
    shape = (config.n_layers, config.n_heads, config.head_dim)
    linear = 2 * config.n_params * sum(to - start for start, to in chunks)
    attention = sum(attention_flops(*shape, to) - attention_flops(*shape, start) for start, to in chunks)
    cached = sum(to for _, to in chunks) * python.kv_bytes_per_token
    parts = [(python.weight_bytes, linear), (cached, attention)]
    return sum(max(n_bytes / card.bandwidth, flops / card.peak_flops) for n_bytes, flops in parts)


def served(requests: list[dict[str, int]], kind: str, slots: int, budget: int) -> tuple[list[Any], list[list[float]]]:
    """Passes, each a list of (request, from, to), and each request's token times, by the engine's scheduler."""
    limit = budget if kind == "chunked" else WHOLE
    batching = "static" if kind == "static" else "continuous"
    cache = RoomyCache()
    scheduler = Scheduler(cache, EngineConfig(max_running=slots, token_budget=limit, batching=batching))
    states = [
        RequestState(Request(i, (1,) * one["prompt"]), arrival=one["arrival"], serial=i, seed=0, max_total=10**6)
        for i, one in enumerate(requests)
    ]
    times: list[list[float]] = [[] for _ in requests]
    passes, now, coming = [], 0.0, list(states)
    while coming or not scheduler.idle:
        while coming and coming[0].priority[0] / 1e3 <= now:
            scheduler.add(coming.pop(0))
        step = scheduler.schedule()
        if step is None:
            now = coming[0].priority[0] / 1e3
            continue
        ends = [(chunk.state.id, cache.length(chunk.state.id)) for chunk in step.chunks]
        passes.append([(seq, to - len(chunk.tokens), to) for (seq, to), chunk in zip(ends, step.chunks, strict=True)])
        now += pass_seconds([(start, to) for _, start, to in passes[-1]])
        scheduler.commit(step)
        for chunk in step.chunks:
            if chunk.n_rows:
                chunk.state.accept(2)
                times[chunk.state.id].append(now)
                if chunk.state.n_output == requests[chunk.state.id]["answer"]:
                    chunk.state.finish = FinishReason.LENGTH
                    scheduler.retire(chunk.state)
        scheduler.released()
    return passes, times


def test_each_pass_holds_the_chunks_that_the_scheduler_would_choose() -> None:
    settings = list(itertools.product(range(3), ("static", "continuous", "chunked"), (1, 4, 10), (64, 512)))
    cases, expected = [], []
    for seed, kind, slots, budget in settings:
        if kind != "chunked" and budget == 64:
            continue
        requests = workload(seed)
        state = {"slots": slots, "budget": budget}
        cases.append(call("timeline/logic.js", "compare", model(MODEL), gpu(CARD), requests, state))
        expected.append((kind, *served(requests, kind, slots, budget)))
    for found, (kind, passes, times) in zip(run(cases), expected, strict=True):
        (ours,) = [one for one in found if one["kind"] == kind]
        chunks = [[(c["id"], c["from"], c["to"]) for c in one["chunks"]] for one in ours["passes"]]
        assert chunks == passes
        for mine, theirs in zip(ours["times"], times, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-9)


def test_with_one_token_prompts_the_steps_are_those_of_batching_on_paper() -> None:
    lengths, slots = [3, 8, 2, 5, 2, 4], 3
    requests = [{"arrival": 0, "prompt": 1, "answer": length} for length in lengths]
    (found,) = run(
        [call("timeline/logic.js", "compare", model(MODEL), gpu(CARD), requests, {"slots": slots, "budget": 16})]
    )
    static, continuous, chunked = found
    for run_, paper in ((static, static_batching(lengths, slots)), (continuous, continuous_batching(lengths, slots))):
        ends = [one["end"] for one in run_["passes"]]
        assert [1 + ends.index(at) for at in run_["freed"]] == paper
    assert (len(static["passes"]), len(continuous["passes"]), len(chunked["passes"])) == (13, 9, 9)
