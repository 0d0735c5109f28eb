"""Prefix caching: how much sooner the first token comes if the beginning of the prompt is in the cache already.

Prediction: cached blocks cost nothing, and the rest is a pass over the remaining tokens. As long as such a pass is
compute-bound, its time falls in proportion to its tokens.
"""

from __future__ import annotations

from functools import partial

from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.harness.result import Section
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request

SHARED = 384  # tokens that all prompts begin with
OWN = 16  # tokens of each request


def run(bench: Bench) -> Section:
    shared = SHARED // 4 if bench.quick else SHARED
    section = Section(
        "prefix",
        f"Time to first token of a prompt of {shared} shared and {OWN} own tokens",
        {"sharing": "prefix sharing", "computed": "tokens computed", "milliseconds": "TTFT, ms"},
    )
    bench.say("prefix sharing")
    engines = {name: _engine(bench, shared, on) for name, on in (("off", False), ("on", True))}
    beginning = bench.prompts(1, shared)[0]
    endings = iter(bench.prompts(1000, OWN, seed=1))
    computed: dict[str, int] = {}

    def ttft(name: str) -> float:
        engine = engines[name]
        before = engine.stats.n_prefill_tokens
        request = Request("next", (*beginning, *next(endings)), max_tokens=1)
        found = engine.run([request])["next"].timeline.ttft
        assert found is not None
        computed[name] = engine.stats.n_prefill_tokens - before
        return found

    ttft("on")  # the first run compiles kernels
    samples = bench.compare({name: partial(ttft, name) for name in engines})
    for name in engines:
        row = {"sharing": name, "computed": computed[name], "milliseconds": samples.median(name) * 1e3}
        section.rows.append(row)
    section.notes.append(
        f"TTFT without sharing is {samples.ratio('off', 'on'):.1f} times that with it; the tokens to compute are "
        f"{computed['off'] / computed['on']:.1f} times as many."
    )
    return section


def _engine(bench: Bench, shared: int, sharing: bool) -> Engine:
    blocks = 4 * -(-(shared + OWN + 1) // 16)
    config = EngineConfig(token_budget=shared + OWN, n_blocks=blocks, prefix_sharing=sharing)
    return Engine.for_llama(bench.model("fp32"), config, clock=bench.clock)
