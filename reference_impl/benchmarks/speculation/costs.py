"""What speculation costs and saves in time: the speed-up predicted from measured costs, beside the measured one.

The prediction needs three times, each measured by itself: a plain step, a step that also checks k drafts, and the
drafting of one token. None of them depends on how often drafts are accepted, so prediction and measurement are
independent. Predicted speed-up, in plain steps: (tokens a pass) / (k · draft + verify), after Leviathan et al. 2023,
theorem 3.8, with a verification that may cost more than a plain step.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from reference_impl.benchmarks.speculation.measure import BLOCK_SIZE, Acceptance, Answer, draft_source, replay
from reference_impl.bounds.arithmetic import speculative_speedup
from reference_impl.common.clock import Clock
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama
from reference_impl.speculative.drafts import Draft, DraftSource, Wanted
from reference_impl.speculative.speculator import DraftLength, SpeculationStats, Speculator


@dataclass(frozen=True)
class Costs:
    """Seconds, for one batch size and one k."""

    k: int
    batch: int
    plain: float  # a step without drafts
    verify: float  # a step that checks k drafts of every sequence
    draft: float  # one drafted token of every sequence

    @property
    def draft_cost(self) -> float:
        """One drafted token in plain steps: c of the paper."""
        return self.draft / self.plain

    @property
    def verify_cost(self) -> float:
        """A verification in plain steps: 1 if checking k more tokens is free."""
        return self.verify / self.plain

    def speedup(self, alpha: float) -> float:
        """On paper, for independent acceptances of probability α."""
        return speculative_speedup(alpha, self.k, self.draft_cost, self.verify_cost)

    def speedup_at(self, tokens_per_pass: float, drafted: float | None = None) -> float:
        """Speed-up at `tokens_per_pass`. `drafted`: tokens drafted a pass, if a look-up does not always find k."""
        n = self.k if drafted is None else drafted
        # a pass over fewer drafts costs less, in proportion
        verify = 1 + (self.verify_cost - 1) * n / self.k
        return tokens_per_pass / (n * self.draft_cost + verify)


class Known:
    """A `DraftSource` that knows the answers, with which a verification is timed: drafts are right and free."""

    vocab_size = None

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.texts: dict[Hashable, tuple[int, ...]] = {i: a.prompt + a.tokens for i, a in enumerate(answers)}

    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        return [[Draft(t) for t in self.texts[o.id][len(o.tokens) : len(o.tokens) + o.n]] for o in wanted]

    def forget(self, request_id: Hashable) -> None:
        pass


@dataclass
class Timed:
    """A `DraftSource` that notes the seconds of each call, and how many tokens it drafted for how many sequences."""

    source: DraftSource
    clock: Clock
    calls: list[tuple[float, int, int]] = field(default_factory=list)

    @property
    def vocab_size(self) -> int | None:
        return self.source.vocab_size

    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        started = self.clock()
        drafts = self.source.propose(wanted)
        self.calls.append((self.clock() - started, max(map(len, drafts), default=0), len(wanted)))
        return drafts

    def forget(self, request_id: Hashable) -> None:
        self.source.forget(request_id)


@dataclass(frozen=True)
class Decoded:
    """One timed run over all answers, without the step of the prompts."""

    seconds: float
    steps: tuple[float, ...]  # seconds of those with every sequence in them
    tokens: tuple[tuple[int, ...], ...]
    stats: SpeculationStats | None


def decode(target: Llama, answers: Sequence[Answer], speculator: Speculator | None, clock: Clock) -> Decoded:
    """Writes answers as long as these to their prompts, all in one batch: once to warm up, once by the clock."""
    n_prompt = sum(len(answer.prompt) for answer in answers)
    n_blocks = sum(-(-(len(answer.prompt) + len(answer.tokens)) // BLOCK_SIZE) for answer in answers)
    rows = len(answers) * (1 + (speculator.length.most if speculator else 0))
    config = EngineConfig(
        max_running=len(answers),
        token_budget=max(n_prompt, rows),
        block_size=BLOCK_SIZE,
        n_blocks=n_blocks,
        prefix_sharing=False,
    )
    engine = Engine.for_llama(target, config, clock=clock, strategy=speculator)
    requests = [Request(i, answer.prompt, len(answer.tokens)) for i, answer in enumerate(answers)]
    engine.run(requests)  # kernels are compiled and passes recorded at their first use, once for each shape
    if speculator is not None:
        speculator.stats = SpeculationStats()
    for request in requests:
        engine.add(request)
    written: list[list[int]] = [[] for _ in answers]
    times = [clock()]
    full = []
    while not engine.idle:
        everyone = engine.n_running == len(answers)
        for output in engine.step():
            written[int(str(output.request_id))] += output.tokens
        times.append(clock())
        if len(times) > 2 and everyone:
            full.append(times[-1] - times[-2])
    stats = speculator.stats if speculator else None
    return Decoded(times[-1] - times[1], tuple(full), tuple(map(tuple, written)), stats)


def measure_costs(
    target: Llama, draft: str | Llama, answers: Sequence[Answer], k: int, clock: Clock = time.perf_counter
) -> Costs:
    """The costs at the batch of these answers. None of them depends on what the draft would have guessed."""
    plain = decode(target, answers, None, clock)
    verified = decode(target, answers, Speculator(Known(answers), DraftLength(k)), clock)
    source = Timed(_source(draft, answers), clock)
    replay(source, answers, k)
    calls = [
        seconds / drafted for seconds, drafted, n in source.calls[1:] if drafted == k and n == len(answers)
    ]  # the first one computes the prompts
    return Costs(
        k,
        len(answers),
        _median(plain.steps, "an answer of at least three tokens"),
        # the last step of a request checks fewer
        _median(verified.steps[: max(1, len(verified.steps) - 1)], f"answers of more than {k} tokens"),
        statistics.median(calls) if calls else 0.0,
    )


@dataclass(frozen=True)
class Speedup:
    """Plain decoding's seconds over those with drafts, predicted and measured. The answers were the same."""

    costs: Costs
    acceptance: Acceptance
    predicted: float  # from α by the formula, and the costs
    measured: float
    same: bool  # token by token
    plain_seconds: float
    seconds: float


def compare(
    target: Llama,
    draft: str | Llama,
    answers: Sequence[Answer],
    k: int = 4,
    rounds: int = 3,
    clock: Clock = time.perf_counter,
) -> Speedup:
    """Predicts, then measures: plain and speculative runs take turns, and the ratio is the median over the rounds."""
    accepted = replay(_source(draft, answers), answers, k)
    costs = measure_costs(target, draft, answers, k, clock)
    drafted = accepted.stats.n_drafted / max(1, accepted.stats.n_passes)
    pairs = []
    for _ in range(rounds):
        plain = decode(target, answers, None, clock)
        fast = decode(target, answers, Speculator(_source(draft, answers), DraftLength(k)), clock)
        pairs.append((plain, fast))
    return Speedup(
        costs,
        accepted,
        predicted=costs.speedup_at(accepted.formula, drafted),
        measured=statistics.median(plain.seconds / fast.seconds for plain, fast in pairs),
        same=all(plain.tokens == fast.tokens for plain, fast in pairs),
        plain_seconds=statistics.median(plain.seconds for plain, _ in pairs),
        seconds=statistics.median(fast.seconds for _, fast in pairs),
    )


def _source(draft: str | Llama, answers: Sequence[Answer]) -> DraftSource:
    longest = max(len(answer.prompt) + len(answer.tokens) for answer in answers)
    return draft_source(draft, len(answers), longest)


def _median(values: Sequence[float], needed: str) -> float:
    if not values:
        raise ValueError(f"too little to measure: {needed} is needed")
    return statistics.median(values)
