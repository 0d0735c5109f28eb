"""The gain from drafts by kind of text, on paper and by the clock: the sections of the speculation table.

Acceptance and tokens a pass are counted on the target's own greedy answers (`measure`), and times are measured on this
machine (`costs`). Four tables: acceptance and the formula's assumption; the speed-up predicted and measured; the best
draft length; and how much of the gain is left as the batch grows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from reference_impl.benchmarks.harness.result import Section
from reference_impl.benchmarks.speculation import costs, measure
from reference_impl.benchmarks.speculation.measure import Acceptance, Answer
from reference_impl.benchmarks.speculation.notes import notes
from reference_impl.benchmarks.speculation.prompts import KINDS, prompt_ids
from reference_impl.checkpoints.weights import Loaded, load
from reference_impl.common.clock import Clock
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.model.llama import Llama

K = 4
LENGTHS = (1, 2, 3, 4, 6, 8)  # tokens drafted a round
TIMED_LENGTHS = (1, 4, 8)  # costs at the other lengths are interpolated
SPEEDUP_COLUMNS = {
    "plain_ms": "plain step ms",
    "draft_cost": "a draft, steps",
    "verify_cost": f"checking {K}, steps",
    "predicted": "predicted ×",
    "measured": "measured ×",
}


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    n_tokens: int  # of an answer
    n_prompt: int  # tokens of a prompt
    n_prompts: int  # a kind
    n_timed: int  # of them
    rounds: int  # of timing
    batches: tuple[int, ...]


EFFORT = {  # by size of the target; (whole, quick)
    "small": (Effort(96, 256, 6, 2, 3, (1, 2, 4, 8, 16)), Effort(48, 128, 2, 1, 1, (1, 4))),
    "large": (Effort(64, 128, 4, 1, 2, (1, 4, 8)), Effort(24, 64, 1, 1, 1, (1,))),
}


@dataclass
class Subject:
    """One target with one draft, and its greedy answers by kind of text."""

    target: Loaded
    draft: str | Llama  # "ngram" or a model
    draft_name: str
    effort: Effort
    answers: dict[str, list[Answer]]
    clock: Clock = time.perf_counter

    @property
    def names(self) -> dict[str, str]:
        return {"target": self.target.model.config.name, "draft": self.draft_name}

    def replay(self, kind: str, k: int) -> Acceptance:
        answers = self.answers[kind]
        longest = max(len(answer.prompt) + len(answer.tokens) for answer in answers)
        return measure.replay(measure.draft_source(self.draft, len(answers), longest), answers, k)


def acceptance(subjects: Sequence[Subject]) -> Section:
    """α by position and kind, tokens a pass against the formula, and the test of its assumption."""
    section = Section(
        "speculation_acceptance",
        f"Greedy drafts, {K} a round: how often they are accepted",
        {
            "target": "target",
            "draft": "draft",
            "kind": "text",
            "judged": "judged",
            "alpha": "α",
            "positions": f"α at position 1 to {K}",
            "tokens_per_pass": "tokens a pass",
            "formula": "by the formula",
            "correlation": "correlation",
            "correlation_error": "± (if independent)",
            "alpha_sampled": "α at temperature 1",
        },
    )
    for subject in subjects:
        for kind in subject.answers:
            found = subject.replay(kind, K)
            section.rows.append(
                subject.names
                | {
                    "kind": kind,
                    "judged": sum(found.stats.judged),
                    "alpha": found.alpha,
                    "positions": " ".join(f"{a:.2f}" for a in found.stats.acceptance_by_position),
                    "tokens_per_pass": found.tokens_per_pass,
                    "formula": found.formula,
                    "correlation": found.autocorrelation,
                    "correlation_error": found.autocorrelation_error,
                    "alpha_sampled": _sampled(subject, kind),
                }
            )
    section.notes += notes(section.rows)
    return section


def speedup(subjects: Sequence[Subject], say: Callable[[str], None]) -> Section:
    """The speed-up at batch 1: predicted from α and three measured times, and measured."""
    section = Section(
        "speculation_speedup",
        f"Speed against plain decoding of the same model, batch 1, {K} drafts a round",
        {
            "target": "target",
            "draft": "draft",
            "kind": "text",
            **SPEEDUP_COLUMNS,
            "same": "same answer",
        },
    )
    section.notes += [
        "Predicted: tokens a pass by the formula, over what drafting and checking cost. A model of a few MB lies in",
        "the processor's cache: its passes wait for arithmetic, not for memory, so checking more tokens is not free.",
    ]
    for subject in subjects:
        for kind, answers in subject.answers.items():
            say(f"{subject.names['target']}, {subject.draft_name}, {kind}")
            runs = [
                costs.compare(subject.target.model, subject.draft, [answer], K, subject.effort.rounds, subject.clock)
                for answer in _long(answers)[: subject.effort.n_timed]
            ]
            section.rows.append(
                subject.names
                | {
                    "kind": kind,
                    "plain_ms": fmean(run.costs.plain for run in runs) * 1e3,
                    "draft_cost": fmean(run.costs.draft_cost for run in runs),
                    "verify_cost": fmean(run.costs.verify_cost for run in runs),
                    # over all answers together, since their seconds add up
                    "predicted": _total(runs, lambda run: run.plain_seconds / run.predicted),
                    "measured": _total(runs, lambda run: run.plain_seconds / run.measured),
                    "same": f"{sum(run.same for run in runs)} of {len(runs)}",
                }
            )
    return section


def lengths(subjects: Sequence[Subject], say: Callable[[str], None]) -> Section:
    """The speed-up for each draft length, from replayed rounds and measured costs. The best one is marked."""
    section = Section(
        "speculation_length",
        "The best draft length, predicted from replayed rounds and measured costs, batch 1",
        {"target": "target", "draft": "draft", "kind": "text"}
        | {f"k{k}": f"k = {k}" for k in LENGTHS}
        | {"best": "best k"},
    )
    for subject in subjects:
        say(f"{subject.names['target']}, {subject.draft_name}: draft lengths")
        curve = {
            k: costs.measure_costs(
                subject.target.model, subject.draft, _long(subject.answers["code"])[:1], k, subject.clock
            )
            for k in TIMED_LENGTHS
        }
        for kind in subject.answers:
            found = {k: _at_length(subject.replay(kind, k), curve) for k in LENGTHS}
            best = max(found, key=lambda k: found[k])
            section.rows.append(
                subject.names
                | {"kind": kind, "best": best if found[best] > 1 else 0}
                | {f"k{k}": value for k, value in found.items()}
            )
    section.notes.append("Speed-up by draft length. Best k 0: plain decoding is faster than any of them.")
    return section


def batches(subjects: Sequence[Subject], say: Callable[[str], None]) -> Section:
    """The speed-up for growing batches of code: checking more tokens is free only while nothing else fills the pass."""
    section = Section(
        "speculation_batch",
        f"The gain as the batch grows, code, {K} drafts a round",
        {"target": "target", "draft": "draft", "batch": "batch", **SPEEDUP_COLUMNS},
    )
    for subject in subjects:
        answers = _long(subject.answers["code"])
        for batch in subject.effort.batches:
            say(f"{subject.names['target']}, {subject.draft_name}: batch {batch}")
            chosen = [answers[i % len(answers)] for i in range(batch)]
            run = costs.compare(
                subject.target.model, subject.draft, chosen, K, max(1, subject.effort.rounds // 2), subject.clock
            )
            section.rows.append(
                subject.names
                | {
                    "batch": batch,
                    "plain_ms": run.costs.plain * 1e3,
                    "draft_cost": run.costs.draft_cost,
                    "verify_cost": run.costs.verify_cost,
                    "predicted": run.predicted,
                    "measured": run.measured,
                }
            )
    return section


def subject(target: Loaded, draft: str, effort: Effort, clock: Clock = time.perf_counter) -> Subject:
    """Loads the draft and has the target write its answers. ValueError if the two do not share a tokenizer."""
    model: str | Llama = draft
    if draft != "ngram":
        model, its_tokenizer = load(draft)
        if not its_tokenizer.has_tokens_of(target.tokenizer):
            raise ValueError(f"{draft}: its tokenizer is not {target.model.config.name}'s")
    answers = {}
    for kind in KINDS:
        prompts = prompt_ids(kind, target.tokenizer, effort.n_prompt)[: effort.n_prompts]
        answers[kind] = measure.write_answers(target.model, prompts, effort.n_tokens, target.tokenizer.eos_ids)
    return Subject(target, model, draft, effort, answers, clock)


def _sampled(subject: Subject, kind: str) -> float | None:
    """Mean Σ min(p, q) along answers drawn at temperature 1; a look-up draws nothing."""
    if isinstance(subject.draft, str):
        return None
    params = SamplingParams(temperature=1.0)
    model, prompts = subject.target.model, [answer.prompt for answer in subject.answers[kind]]
    drawn = measure.write_answers(model, prompts, subject.effort.n_tokens, sampling=params)
    values = [value for answer in drawn for value in measure.overlaps(model, subject.draft, answer, params)]
    return sum(values) / len(values)


def _at_length(found: Acceptance, curve: dict[int, costs.Costs]) -> float:
    """The speed-up of replayed rounds. Costs between the measured lengths are interpolated linearly."""
    lower = max(k for k in curve if k <= found.k)
    upper = min(k for k in curve if k >= found.k)
    share = (found.k - lower) / (upper - lower) if upper > lower else 0.0
    plain, draft, verify = (
        (1 - share) * getattr(curve[lower], name) + share * getattr(curve[upper], name)
        for name in ("plain", "draft", "verify")
    )
    stats = found.stats
    here = costs.Costs(found.k, 1, plain, verify, draft)
    return here.speedup_at(found.tokens_per_pass, stats.n_drafted / max(1, stats.n_passes))


def _long(answers: Sequence[Answer]) -> list[Answer]:
    """The answers, longest first: one that ended at once cannot be timed."""
    return sorted(answers, key=lambda answer: -len(answer.tokens))


def _total(runs: Sequence[costs.Speedup], seconds: Callable[[costs.Speedup], float]) -> float:
    return sum(run.plain_seconds for run in runs) / sum(seconds(run) for run in runs)
