"""What a draft source is, and what the speculator remembers about one request's drafts.

A source drafts the next tokens of a request once. The speculator keeps the drafts until the target has judged them,
however many passes that takes and whatever happens meanwhile (a small token budget, a full cache, preemption). A round
of drafts that a model drew ends with a token that the target chooses, and only then are new ones drawn. So the places
where a request draws, and with them its random numbers, never depend on the requests it shares a batch with.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from reference_impl.decoding.sampling import SamplingParams


@dataclass(frozen=True, eq=False)
class Draft:
    """One drafted token, and the distribution q [vocabulary] that it was drawn from; None means one-hot."""

    token: int
    probs: Tensor | None = None


@dataclass(frozen=True)
class Wanted:
    """An order for drafts. Between two orders of the same `id`, tokens are only ever appended, until `forget`."""

    id: Hashable
    tokens: Sequence[int]  # prompt and answer so far
    n: int  # drafted tokens wanted, at least 1; fewer may come
    sampling: SamplingParams  # a draft model draws with the same settings as the target
    uniform: Callable[[int], float]  # the random number that draws the i-th of them


class DraftSource(Protocol):
    """Guesses the next tokens. The guesses for an order do not depend on the other orders."""

    @property
    def vocab_size(self) -> int | None:
        """The size of its vocabulary; None if it only repeats tokens that it was given."""

    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        """Drafts for each order, possibly none. If it raises, it may be asked again."""

    def forget(self, request_id: Hashable) -> None:
        """The request has ended. No error if it was never seen."""


@dataclass
class Drafting:
    """One request's round of drafts, and how many of its drafts were accepted so far."""

    pending: list[Draft] = field(default_factory=list)  # for the next places, not judged yet
    open: bool = False  # the round goes on: drafts are pending, or the target's own token after drawn ones
    n_passed: int = 0  # drafts of the same round that were accepted in earlier passes
    made_at: int = -1  # tokens that the request had when it was last drafted for
    judged: float = 0.0  # drafts so far, those of older rounds counting less
    accepted: float = 0.0

    def due(self, n_tokens: int) -> bool:
        """Whether a request of `n_tokens` tokens needs drafts now."""
        return not self.open and self.made_at != n_tokens

    def start(self, drafts: list[Draft], n_tokens: int, memory: float) -> None:
        """Begins a round for a request of `n_tokens` tokens. Older rounds now count only `memory` times as much."""
        self.pending, self.open, self.n_passed, self.made_at = drafts, bool(drafts), 0, n_tokens
        self.judged *= memory
        self.accepted *= memory

    def settle(self, tokens: Sequence[int], n_rows: int) -> tuple[int, int]:
        """Takes the tokens from a pass over `n_rows` rows. Returns (drafts it judged, drafts it accepted)."""
        n_accepted = 0
        while n_accepted < min(len(tokens), len(self.pending)) and self.pending[n_accepted].token == tokens[n_accepted]:
            n_accepted += 1
        n_judged = min(len(self.pending), n_rows, n_accepted + 1)
        if len(tokens) == n_accepted:  # the pass had no row for the target's own token
            drawn = self.pending[0].probs is not None
            self.pending = self.pending[n_accepted:]
            self.open = drawn or bool(self.pending)
            self.n_passed += n_accepted
        else:
            self.pending, self.open = [], False
        self.judged += n_judged
        self.accepted += n_accepted
        return n_judged, n_accepted
