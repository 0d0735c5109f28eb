"""Gaps: how long a running answer pauses while a long prompt is computed, for passes of different length.

Prediction: the longest gap is as long as the longest pass. `serve` chooses the tokens of a pass so that it takes at
most `--max-gap`. That choice stands beside a pass of 512 tokens here; the prompt's time to first token is the price.
"""

from __future__ import annotations

import statistics
from itertools import pairwise

from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.harness.result import Section
from reference_impl.engine.capacity import LEAST_BUDGET, MAX_GAP, MOST_BUDGET, measure_passes
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request

PROMPT = 1900  # tokens
BEFORE = 8  # tokens of the running answer before the prompt comes


def run(bench: Bench) -> Section:
    prompt = PROMPT // 8 if bench.quick else PROMPT
    section = Section(
        "gaps",
        f"A running answer while a prompt of {prompt:,} tokens is computed",
        {
            "budget": "tokens in a pass",
            "median": "median gap, ms",
            "longest": "longest gap, ms",
            "ttft": "TTFT of the prompt, s",
        },
    )
    bench.say("gaps")
    cost = measure_passes(bench.model("fp32"), bench.clock)
    chosen = cost.tokens_within(MAX_GAP, LEAST_BUDGET, MOST_BUDGET)
    for budget in sorted({chosen, MOST_BUDGET}):
        gaps, ttft = _gaps(bench, prompt, budget)
        section.rows.append(
            {"budget": budget, "median": statistics.median(gaps) * 1e3, "longest": max(gaps) * 1e3, "ttft": ttft}
        )
    section.notes.append(f"`serve` would choose {chosen} tokens here, for gaps of at most {MAX_GAP * 1e3:.0f} ms.")
    return section


def _gaps(bench: Bench, n_prompt: int, budget: int) -> tuple[list[float], float]:
    """Pauses of the running answer while the prompt is computed, and the prompt's time to first token."""
    n_blocks = -(-2 * (n_prompt + 512) // 16)
    config = EngineConfig(max_running=2, token_budget=budget, n_blocks=n_blocks, prefix_sharing=False)
    engine = Engine.for_llama(bench.model("fp32"), config, clock=bench.clock)
    running, coming = (tuple(prompt) for prompt in bench.prompts(2, n_prompt))
    engine.add(Request("running", running[:16], max_tokens=512))
    for _ in range(BEFORE):
        engine.step()
    times = [bench.clock()]
    engine.add(Request("coming", coming, max_tokens=1))
    while True:
        outputs = {output.request_id: output for output in engine.step()}
        times.append(bench.clock())
        if "coming" in outputs:
            return [later - earlier for earlier, later in pairwise(times)], times[-1] - times[0]
