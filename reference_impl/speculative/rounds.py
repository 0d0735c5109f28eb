"""One pass of the target over drafts: which drafts go into it, and which tokens its logits turn them into.

Drafts take what is left. Running answers get their one token first and prompts come second, so drafts use only token
budget and cache that no other request wants: they delay no prompt and preempt nobody. A full batch leaves little for
them, and there they gain least anyway.

The random numbers that a request uses depend on places in its answer alone. At each place, the number "choice" is the
one that plain decoding chooses the token with, "draft" draws the drafted token and "accept" decides about it. A round
of k drawn drafts uses k numbers of "draft", one of "accept" for each judged draft, and one of "choice" at the place
where the round ends. Drafts that were not drawn use "choice" alone. When a draft is refused, the places after it are
drafted again with the same numbers. That is fair, because those numbers had no influence on the tokens that were kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from reference_impl.decoding.greedy import accept_greedy
from reference_impl.decoding.next_tokens import choose_tokens
from reference_impl.decoding.rejection import speculative_round
from reference_impl.decoding.sampling import processed_probs
from reference_impl.speculative.drafts import Draft

if TYPE_CHECKING:
    from reference_impl.cache.interface import KVCache
    from reference_impl.engine.request import RequestState
    from reference_impl.engine.step import Chunk

    Pending = Callable[[RequestState], list[Draft]]  # the drafts of a request that the target has not judged


def with_drafts(chunks: list[Chunk], pending: Pending, cache: KVCache, budget: int) -> list[Chunk]:
    """Appends drafts to chunks that end their request's tokens, oldest request first.

    The whole pass has at most `budget` tokens, and no more than the free cache can hold.
    """
    left = budget - sum(len(chunk.tokens) for chunk in chunks)
    counts = {chunk.state.id: len(chunk.tokens) for chunk in chunks}
    longer = []
    for chunk in chunks:
        drafts = pending(chunk.state)
        n = min(len(drafts), left) if chunk.n_rows else 0
        while n and not cache.can_extend(list((counts | {chunk.state.id: len(chunk.tokens) + n}).items())):
            n -= 1
        if n:
            chunk = replace(chunk, tokens=chunk.tokens + [draft.token for draft in drafts[:n]], n_rows=1 + n)
            counts[chunk.state.id] = len(chunk.tokens)
            left -= n
        longer.append(chunk)
    return longer


def choose_rounds(logits: Tensor, chunks: Sequence[Chunk], pending: Pending) -> list[list[int]]:
    """The tokens of each chunk, from the logits [sum of their n_rows, vocabulary] of their last rows.

    Row i of a chunk is judged against the request's i-th pending draft. Without such a draft it chooses freely.
    """
    places = [(chunk.state, i) for chunk in chunks for i in range(chunk.n_rows)]
    plain = [row for row, (state, _) in enumerate(places) if not _drawn(pending(state))]
    chosen: dict[int, int] = {}
    if plain:
        states = [places[row] for row in plain]
        tokens = choose_tokens(
            logits if len(plain) == len(places) else logits[plain],
            [state.request.sampling for state, _ in states],
            [state.uniform(state.n_output + i) for state, i in states],
        )
        chosen = dict(zip(plain, tokens, strict=True))
    rounds = []
    end = 0
    for chunk in chunks:
        start, end = end, end + chunk.n_rows
        drafts = pending(chunk.state)[: chunk.n_rows]
        if _drawn(drafts):
            rounds.append(_judge_drawn(logits[start:end], chunk.state, drafts))
        else:
            rounds.append(_judge_certain([chosen[row] for row in range(start, end)], drafts))
    return rounds


def _drawn(drafts: Sequence[Draft]) -> bool:
    return bool(drafts) and drafts[0].probs is not None


def _judge_certain(chosen: list[int], drafts: Sequence[Draft]) -> list[int]:
    """Judges drafts that were not drawn from a distribution: q is one-hot, whether the request is greedy or not.

    The target's own choice decides. It equals the draft with probability p(draft), which is the probability that the
    exact rule accepts it. Otherwise it is distributed as p without the draft, which is the residual. So this is the
    exact rule with one random number for both decisions, and even a sampled answer is what it is without drafts.
    """
    drafted = [draft.token for draft in drafts]
    if drafted == chosen:  # the pass has no row for the target's own token
        return chosen
    return accept_greedy(drafted[: len(chosen) - 1], chosen)


def _judge_drawn(logits: Tensor, state: RequestState, drafts: Sequence[Draft]) -> list[int]:
    p = processed_probs(logits, state.request.sampling)
    q = torch.stack([draft.probs for draft in drafts if draft.probs is not None])
    first = state.n_output
    return speculative_round(
        p.double(),
        q.double(),
        [draft.token for draft in drafts],
        lambda i: state.uniform(first + i, "accept"),
        lambda i: state.uniform(first + i),
    ).tokens
