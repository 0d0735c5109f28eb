"""One forward pass, as the scheduler plans it: chunks of requests, with room for their tokens reserved in the cache."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reference_impl.engine.request import RequestState

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch


@dataclass(frozen=True)
class Chunk:
    """The next tokens of one request.

    `n_rows` of its last rows need logits: 0 inside a prompt, 1 where a token is to be chosen, and one more for each
    drafted token at its end.
    """

    state: RequestState
    tokens: list[int]
    n_rows: int


@dataclass
class Step:
    """One pass. `Scheduler.commit` or `Scheduler.abort` ends it."""

    chunks: list[Chunk]
    batch: ForwardBatch
    fresh: list[RequestState] = field(default_factory=list)  # admitted in this step
    preempted: list[RequestState] = field(default_factory=list)


class StepError(RuntimeError):
    """A step failed and was undone: the cache is as before it.

    `request_ids` are the requests at fault, or all requests of the pass if nobody knows which one is.
    """

    def __init__(self, request_ids: Sequence[Hashable], cause: object) -> None:
        names = ", ".join(map(repr, request_ids))
        super().__init__(f"the step over request{'s' * (len(request_ids) > 1)} {names} failed: {cause}")
        self.request_ids = tuple(request_ids)
