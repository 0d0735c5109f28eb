"""What requests do to each other: eight questions alone and in one batch, and a long prompt that others must wait for.

Prediction: decode steps of a batch read the weights once for all, while prefill gains nothing from company. A prompt
that is computed in one pass makes the others wait as long as that pass; in chunks they wait for one chunk.
"""

from __future__ import annotations

from functools import partial

from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.harness.result import Section
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request

QUESTIONS = 8
QUESTION = 36  # tokens
ANSWER = 10
PROMPT = 192  # tokens of the request that arrives while two others decode
CHUNK = 32


def run(bench: Bench) -> Section:
    section = Section(
        "requests",
        f"{QUESTIONS} requests of {QUESTION} tokens in, {ANSWER} out; a prompt of {PROMPT} tokens beside two others",
        {
            "case": "case",
            "served": "served",
            "seconds": "s",
            "pause_ms": "longest pause of the others, ms",
            "first_ms": "TTFT of the prompt, ms",
        },
    )
    bench.say("requests in company")
    bench.model("fp32")
    ways = {"one after another": 1, "in one batch": QUESTIONS}
    serve(bench, QUESTIONS)  # the first run compiles kernels
    samples = bench.compare({name: partial(serve, bench, slots) for name, slots in ways.items()}, warm_up=False)
    for name in ways:
        seconds = samples.median(name)
        section.rows.append(
            {"case": "eight questions", "served": name, "seconds": seconds, "pause_ms": None, "first_ms": None}
        )
    sizes = {"in one pass": None, f"in chunks of {CHUNK}": CHUNK}
    firsts: dict[str, list[float]] = {name: [] for name in sizes}

    def pause(name: str) -> float:
        longest, first = interrupted(bench, sizes[name])
        firsts[name].append(first)
        return longest

    pauses = bench.compare({name: partial(pause, name) for name in sizes})
    for name in sizes:
        first = sorted(firsts[name])[len(firsts[name]) // 2]
        row = {"seconds": None, "pause_ms": 1000 * pauses.median(name), "first_ms": 1000 * first}
        section.rows.append({"case": "a long prompt", "served": name, **row})
    section.notes.append(
        f"In one batch {samples.ratio('one after another', 'in one batch'):.1f} times as fast. With chunks the longest "
        f"pause is {pauses.ratio(*sizes):.1f} times shorter."
    )
    return section


def serve(bench: Bench, slots: int) -> float:
    """Seconds until all questions are answered, `slots` at once."""
    config = EngineConfig(max_running=slots, n_blocks=64, prefix_sharing=False)
    engine = Engine.for_llama(bench.model("fp32"), config, clock=bench.clock)
    start = bench.clock()
    engine.run(Request(i, tuple(prompt), ANSWER) for i, prompt in enumerate(bench.prompts(QUESTIONS, QUESTION)))
    return bench.clock() - start


def interrupted(bench: Bench, chunk_size: int | None) -> tuple[float, float]:
    """Two requests decode when a long prompt arrives: their longest pause, and its time to first token, in seconds."""
    config = EngineConfig(chunk_size=chunk_size, n_blocks=64, prefix_sharing=False)
    engine = Engine.for_llama(bench.model("fp32"), config, clock=bench.clock)
    for i, prompt in enumerate(bench.prompts(2, QUESTION)):
        engine.add(Request(i, tuple(prompt), max_tokens=ANSWER + 2))
    for _ in range(4):
        engine.step()
    engine.add(Request("new", tuple(bench.prompts(1, PROMPT, seed=1)[0]), max_tokens=2))
    timelines = {name: answer.timeline for name, answer in engine.run().items()}
    first = timelines["new"].ttft
    assert first is not None
    return max(max(timelines[i].itl) for i in range(2)), first
