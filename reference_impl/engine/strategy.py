"""How a pass becomes tokens. Plain decoding chooses one token for each request whose tokens have all been computed.

The engine knows this protocol only. Speculative decoding (`speculative.speculator`) is another strategy: it appends
drafted tokens to the chunks and may return several tokens for each.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

from reference_impl.decoding.next_tokens import choose_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from reference_impl.cache.interface import KVCache
    from reference_impl.engine.request import RequestState
    from reference_impl.engine.step import Chunk


class DecodingStrategy(Protocol):
    """What the engine calls, in this order, in each step. A strategy serves one engine."""

    def require_vocabulary(self, size: int | None) -> None:
        """Called once, before the first step. ValueError if the strategy cannot work with the model's vocabulary."""

    def prepare(self, states: Sequence[RequestState]) -> None:
        """Called before the pass is planned, with all unfinished requests. StepError names requests that failed."""

    def extend(self, chunks: list[Chunk], cache: KVCache, budget: int) -> list[Chunk]:
        """The planned chunks, perhaps with more tokens: at most `budget` in all, and no more than fit into `cache`."""

    def choose(self, logits: Tensor, chunks: Sequence[Chunk]) -> list[list[int]]:
        """The new tokens of each chunk, from the logits [sum of their n_rows, vocabulary] of its last rows.

        It may be called again for the same chunks, and then gives the same tokens.
        """

    def settle(self, chunk: Chunk, tokens: Sequence[int], n_taken: int) -> None:
        """The pass is committed, and the first `n_taken` of these tokens were appended to the request."""

    def forget(self, request_id: Hashable) -> None:
        """The request has ended. No error if it was never seen."""


class PlainDecoding:
    """One token for each row of logits, chosen with the request's own random number."""

    def require_vocabulary(self, size: int | None) -> None:
        pass

    def prepare(self, states: Sequence[RequestState]) -> None:
        pass

    def extend(self, chunks: list[Chunk], cache: KVCache, budget: int) -> list[Chunk]:
        return chunks

    def choose(self, logits: Tensor, chunks: Sequence[Chunk]) -> list[list[int]]:
        states = [chunk.state for chunk in chunks]
        uniforms = [state.uniform(state.n_output) for state in states]
        return [[token] for token in choose_tokens(logits, [state.request.sampling for state in states], uniforms)]

    def settle(self, chunk: Chunk, tokens: Sequence[int], n_taken: int) -> None:
        pass

    def forget(self, request_id: Hashable) -> None:
        pass
