"""Speculative decoding as a strategy of the engine: order drafts before a pass, judge them after it, count acceptances.

The draft source guesses and the target decides, and neither knows about the other. `DraftLength` says how many tokens
are drafted a round: a fixed number, or the best number for the request's own acceptance so far (Leviathan et al. 2023,
section 3.5).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reference_impl.bounds.arithmetic import best_draft_length
from reference_impl.engine.step import Chunk, StepError
from reference_impl.speculative.drafts import Draft, Drafting, DraftSource, Wanted
from reference_impl.speculative.rounds import choose_rounds, with_drafts

if TYPE_CHECKING:
    from torch import Tensor

    from reference_impl.cache.interface import KVCache
    from reference_impl.engine.request import RequestState


@dataclass(frozen=True)
class DraftLength:
    """How many tokens to draft a round. ValueError for values out of range.

    `adaptive` picks the best number from 1 to `most` for the acceptance so far. `cost` (of one drafted token) and `row`
    (of each further token that the target checks) are in plain passes of the target.
    """

    most: int = 4
    adaptive: bool = False
    cost: float = 0.05
    row: float = 0.0
    memory: float = 0.9  # each new round multiplies the weight of the older ones by this
    prior: float = 0.7  # acceptance to start from; it counts like `most` judged tokens

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
    n_passes: int = 0  # of the target, counted for each request that continued its answer in it
    n_tokens: int = 0  # that these passes gave
    judged: list[int] = field(default_factory=list)  # by position in the round
    accepted: list[int] = field(default_factory=list)

    @property
    def acceptance(self) -> float | None:
        """Share of the judged drafts that were accepted: α of the paper. None before the first one."""
        return sum(self.accepted) / sum(self.judged) if self.judged else None

    @property
    def acceptance_by_position(self) -> list[float]:
        return [accepted / judged for accepted, judged in zip(self.accepted, self.judged, strict=True)]

    @property
    def tokens_per_pass(self) -> float | None:
        return self.n_tokens / self.n_passes if self.n_passes else None

    def count(self, first: int, n_judged: int, n_accepted: int) -> None:
        """Counts the drafts that one pass judged, the first of them at position `first` of its round."""
        while len(self.judged) < first + n_judged:
            self.judged.append(0)
            self.accepted.append(0)
        for i in range(n_judged):
            self.judged[first + i] += 1
            self.accepted[first + i] += i < n_accepted


class Speculator:
    """The `DecodingStrategy` that puts drafts from `source` into the passes. It serves one engine."""

    def __init__(self, source: DraftSource, length: DraftLength | None = None) -> None:
        self.source = source
        self.length = length or DraftLength()
        self.stats = SpeculationStats()
        self._drafting: dict[Hashable, Drafting] = {}

    def require_vocabulary(self, size: int | None) -> None:
        """ValueError if the draft's vocabulary is not the target's."""
        if None not in (size, self.source.vocab_size) and size != self.source.vocab_size:
            raise ValueError(
                f"the draft's vocabulary has {self.source.vocab_size} tokens, the target's {size}: "
                "they must share one tokenizer"
            )

    def drafting(self, request_id: Hashable) -> Drafting:
        """What the speculator knows about one request's drafts."""
        return self._drafting.setdefault(request_id, Drafting())

    def prepare(self, states: Sequence[RequestState]) -> None:
        """Gives drafts to all requests that need some, preempted ones included."""
        due = [(state, n) for state in states if (n := self._n_wanted(state)) > 0]
        wanted = [Wanted(state.id, state.tokens, n, state.request.sampling, _drawing(state)) for state, n in due]
        try:
            proposed = self.source.propose(wanted)
        except Exception as error:
            cause = f"the draft failed: {type(error).__name__}: {error}"
            raise StepError([state.id for state, _ in due], cause) from error
        for (state, _), drafts in zip(due, proposed, strict=True):
            self.drafting(state.id).start(drafts, len(state.tokens), self.length.memory)
            self.stats.n_rounds += bool(drafts)
            self.stats.n_drafted += len(drafts)

    def extend(self, chunks: list[Chunk], cache: KVCache, budget: int) -> list[Chunk]:
        return with_drafts(chunks, self._pending, cache, budget)

    def choose(self, logits: Tensor, chunks: Sequence[Chunk]) -> list[list[int]]:
        return choose_rounds(logits, chunks, self._pending)

    def settle(self, chunk: Chunk, tokens: Sequence[int], n_taken: int) -> None:
        """Drops the drafts that were judged, and counts them unless the pass gave the first token of the answer."""
        if chunk.state.n_output == n_taken:
            return
        drafting = self.drafting(chunk.state.id)
        first = drafting.n_passed
        n_judged, n_accepted = drafting.settle(tokens, chunk.n_rows)
        self.stats.n_passes += 1
        self.stats.n_tokens += n_taken
        self.stats.count(first, n_judged, n_accepted)

    def forget(self, request_id: Hashable) -> None:
        self._drafting.pop(request_id, None)
        self.source.forget(request_id)

    def _pending(self, state: RequestState) -> list[Draft]:
        return self.drafting(state.id).pending

    def _n_wanted(self, state: RequestState) -> int:
        """How many tokens to draft for a request now.

        The first token of an answer comes with the prompt. A round ends with a token of the target's own, so of the
        tokens that the answer may still have, all but one can be drafted.
        """
        drafting = self.drafting(state.id)
        if not state.n_output or not drafting.due(len(state.tokens)):
            return 0
        return min(self.length.choose(drafting), state.max_total - len(state.tokens) - 1)


def _drawing(state: RequestState) -> Callable[[int], float]:
    """The random numbers that draw the drafts of a round which begins now."""
    first = state.n_output
    return lambda i: state.uniform(first + i, "draft")
