"""The speculation table in words: why the formula errs, and whether a small draft for SmolLM2 would pay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from reference_impl.benchmarks.harness.result import Row
from reference_impl.benchmarks.speculation.costs import measure_costs
from reference_impl.benchmarks.speculation.measure import Acceptance, Answer
from reference_impl.bounds.arithmetic import best_draft_length, speculative_speedup
from reference_impl.common.clock import Clock
from reference_impl.model.llama import Llama

DRAFT_WIDTH = 128  # of the one-layer draft that SmolLM2 might have


def notes(rows: Sequence[Row]) -> list[str]:
    """The formula's assumption, and what the rows of the acceptance table say about it."""
    dependent = [row for row in rows if abs(row["correlation"]) > 2 * row["correlation_error"]]
    first = sum(row["positions"].split()[0] == min(row["positions"].split()) for row in rows)
    errors = [row["tokens_per_pass"] / row["formula"] - 1 for row in rows]
    return [
        "The formula (1 − α^(k+1))/(1 − α) takes acceptances for independent throws of one coin. Correlation: of a",
        "judged draft with the next one of its answer; beyond twice ± it is no accident: "
        f"{len(dependent)} of {len(rows)} rows.",
        "Easy stretches (names just seen, brackets that close, rows of a table) and hard ones follow each other, and",
        "two effects pull apart. In a streak k drafts pass more often than α^k says: more tokens a pass. But a refused",
        "round is followed by one that starts in the same hard stretch, so many rounds are short: fewer tokens a pass.",
        f"Position 1 is the lowest in {first} of {len(rows)} rows. Measured over formula here: {min(errors):+.1%} to "
        f"{max(errors):+.1%}.",
    ]


def trained_draft(
    target: Llama, answers: Sequence[Answer], look_up: Acceptance, clock: Clock = time.perf_counter
) -> str:
    """How good a one-layer draft with the target's tokenizer must be to beat the look-up, by the clock.

    The draft has random weights, since its time does not depend on what it knows.
    """
    c = target.config
    shape = replace(c, name="draft", n_layers=1, d_model=DRAFT_WIDTH, n_heads=4, n_kv_heads=2, head_dim=32, d_ff=384)
    draft = Llama(shape, target.embed.dtype).randomize(torch.Generator().manual_seed(0))
    one = sorted(answers, key=lambda answer: -len(answer.tokens))[:1]
    found = measure_costs(target, draft, one, look_up.k, clock)
    stats = look_up.stats
    drafted = stats.n_drafted / max(1, stats.n_passes)
    to_beat = replace(found, draft=0.0).speedup_at(look_up.tokens_per_pass, drafted)
    row = (found.verify_cost - 1) / found.k
    alpha = break_even(found.draft_cost, row, to_beat)
    teacher = 2 * c.n_params * 1e6 / 3.5e10 / 3600  # hours of one CPU core at 35 GFLOP/s
    needed = f"more than {alpha:.2f}" if alpha is not None else "more than 1: it cannot"
    return (
        f"A trained draft for {c.name}: one layer of width {DRAFT_WIDTH} has {shape.n_params / 1e6:.1f} M parameters, "
        f"nearly all in its vocabulary of {c.vocab_size:,}, and costs {found.draft_cost:.2f} steps a token. To beat "
        f"the look-up on code (predicted {to_beat:.2f}×) its α must be {needed}. Not built: distilling it takes the "
        f"target's distributions, {teacher:.1f} hours of a CPU core for every million tokens."
    )


def break_even(cost: float, row: float, to_beat: float) -> float | None:
    """The least α whose best draft length is faster than `to_beat`, to 0.01; None if there is none.

    `cost` of a drafted token and `row` of each further token that is checked, in plain steps.
    """
    for hundredths in range(100):
        alpha = hundredths / 100
        k = best_draft_length(alpha, cost, lambda k: 1 + row * k, 16)
        if speculative_speedup(alpha, k, cost, 1 + row * k) > to_beat:
            return alpha
    return None
