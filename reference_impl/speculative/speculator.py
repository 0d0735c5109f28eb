"""Speculative decoding as the engine sees it: order drafts before a pass, judge them after it, count what came of it.

The one idea: a source guesses, the target decides, and neither knows the other. How many tokens are drafted a round is
`DraftLength`: a fixed number, or the one that the request's own acceptance so far calls for (Leviathan et al. 2023,
section 3.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reference_impl.bounds.arithmetic import best_draft_length
from reference_impl.decoding.rejection import Round
from reference_impl.speculative.drafts import Drafting, DraftSource, Wanted

if TYPE_CHECKING:
    from reference_impl.engine.request import RequestState


@dataclass(frozen=True)
class DraftLength:
    """How many tokens to draft a round. ValueError for what makes no sense.

    `adaptive`: at least 1 and at most `most`, the best for the measured acceptance at these costs, both in plain passes
    of the target: `cost` of one drafted token, `row` of each further token that the target checks.
    """

    most: int = 4
    adaptive: bool = False
    cost: float = 0.05
    row: float = 0.0
    memory: float = 0.9  # weight of what was, each round
    prior: float = 0.7  # acceptance assumed before anything was measured, with the weight of `most` tokens

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"a round drafts at least 1 token, got {self.most}")
        if not (self.cost >= 0 and self.row >= 0):
            raise ValueError(f"costs are in target passes, 0 or more: got cost {self.cost} and row {self.row}")
        if not (0 <= self.memory <= 1 and 0 <= self.prior <= 1):
            raise ValueError(f"memory and prior lie in 0..1, got {self.memory} and {self.prior}")

    def choose(self, drafting: Drafting) -> int:
        if not self.adaptive:
            return self.most
        alpha = (self.most * self.prior + drafting.accepted) / (self.most + drafting.judged)
        return max(1, best_draft_length(alpha, self.cost, lambda k: 1 + self.row * k, self.most))


@dataclass
class SpeculationStats:
    """Counters since the start. A draft is judged if all drafts of its round before it were accepted."""

    n_rounds: int = 0  # with at least one draft
    n_drafted: int = 0
    n_passes: int = 0  # of the target, counted for each request that continued its answer
    n_tokens: int = 0  # that came of them
    judged: list[int] = field(default_factory=list)  # by position in the round
    accepted: list[int] = field(default_factory=list)

    @property
    def acceptance(self) -> float | None:
        """Share of the judged drafts that were accepted: α of the paper; None before there is one."""
        return sum(self.accepted) / sum(self.judged) if self.judged else None

    @property
    def acceptance_by_position(self) -> list[float]:
        return [accepted / judged for accepted, judged in zip(self.accepted, self.judged, strict=True)]

    @property
    def tokens_per_pass(self) -> float | None:
        return self.n_tokens / self.n_passes if self.n_passes else None

    def count(self, first: int, n_judged: int, n_accepted: int) -> None:
        """Drafts that were judged in one pass, the first of them at position `first` of its round."""
        while len(self.judged) < first + n_judged:
            self.judged.append(0)
            self.accepted.append(0)
        for i in range(n_judged):
            self.judged[first + i] += 1
            self.accepted[first + i] += i < n_accepted


class Speculator:
    """Gives an engine drafts from `source`; serves that one engine."""

    def __init__(self, source: DraftSource, length: DraftLength | None = None) -> None:
        self.source = source
        self.length = length or DraftLength()
        self.stats = SpeculationStats()

    def require_vocabulary(self, size: int | None) -> None:
        """ValueError if the draft's tokens cannot be the target's."""
        if None not in (size, self.source.vocab_size) and size != self.source.vocab_size:
            raise ValueError(
                f"the draft's vocabulary has {self.source.vocab_size} tokens, the target's {size}: "
                "they must share one tokenizer"
            )

    def due(self, states: Iterable[RequestState]) -> list[tuple[RequestState, int]]:
        """Which of these requests are to be drafted for now, with how many tokens.

        The first token of an answer comes with the prompt. A round ends with a token of the target's own, so of the
        tokens that are left to make it drafts all but one.
        """
        orders = []
        for state in states:
            if state.n_output and state.drafting.due(len(state.tokens)):
                n = min(self.length.choose(state.drafting), state.max_total - len(state.tokens) - 1)
                if n > 0:
                    orders.append((state, n))
        return orders

    def draft(self, orders: Sequence[tuple[RequestState, int]]) -> None:
        """Fetches drafts from the source; the requests keep them until they are judged."""
        wanted = [Wanted(state.id, state.tokens, n, state.request.sampling, _drawing(state)) for state, n in orders]
        for (state, _), drafts in zip(orders, self.source.propose(wanted), strict=True):
            state.drafting.start(drafts, len(state.tokens), self.length.memory)
            self.stats.n_rounds += bool(drafts)
            self.stats.n_drafted += len(drafts)

    def settle(self, state: RequestState, outcome: Round, n_rows: int, n_delivered: int) -> None:
        """Counts a pass over `n_rows` rows of one request that was in its answer before, and drops what was judged."""
        drafting = state.drafting
        n_judged = min(len(drafting.pending), n_rows, outcome.n_accepted + 1)
        self.stats.n_passes += 1
        self.stats.n_tokens += n_delivered
        self.stats.count(drafting.n_passed, n_judged, outcome.n_accepted)
        drafting.settle(outcome, n_judged)

    def forget(self, state: RequestState) -> None:
        self.source.forget(state.id)


def _drawing(state: RequestState) -> Callable[[int], float]:
    first = state.n_output
    return lambda i: state.uniform(first + i, "draft")
