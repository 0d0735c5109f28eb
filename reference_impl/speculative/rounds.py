"""One pass of the target over drafts: which drafts go into it, and what its logits say about them.

The one idea: drafts ride on what is left. A running answer gets its one token first and prompts come second; drafts
take only the budget and the cache that nobody else wants, so they delay no prompt and preempt nobody. In a full batch
that leaves little for them, which is also where they are worth least.

Which random numbers a request uses depends on places alone: at a place of its answer, number "choice" is the one that
plain decoding chooses the token with, "draft" draws the drafted token and "accept" decides on it. So a round of k drawn
drafts uses k of "draft", one of "accept" for each that is judged, and one of "choice" at the place where it ends;
drafts that were not drawn use "choice" alone. A place that is drafted again after a refusal before it meets the same
numbers again, which is fair: they had no part in what was kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from reference_impl.decoding.greedy import accept_greedy
from reference_impl.decoding.next_tokens import choose_tokens
from reference_impl.decoding.rejection import Round, speculative_round
from reference_impl.decoding.sampling import processed_probs
from reference_impl.speculative.drafts import Draft

if TYPE_CHECKING:
    from reference_impl.cache.interface import KVCache
    from reference_impl.engine.request import RequestState
    from reference_impl.engine.scheduler import Chunk


def with_drafts(chunks: list[Chunk], cache: KVCache, budget: int) -> list[Chunk]:
    """Chunks that end their request's tokens, with drafts appended as far as the budget of the whole pass and the free
    cache allow, oldest first.
    """
    left = budget - sum(len(chunk.tokens) for chunk in chunks)
    counts = {chunk.state.id: len(chunk.tokens) for chunk in chunks}
    longer = []
    for chunk in chunks:
        n = min(len(chunk.state.drafting.pending), left) if chunk.n_rows else 0
        while n and not cache.can_extend(list((counts | {chunk.state.id: len(chunk.tokens) + n}).items())):
            n -= 1
        if n:
            drafted = [draft.token for draft in chunk.state.drafting.pending[:n]]
            chunk = replace(chunk, tokens=chunk.tokens + drafted, n_rows=1 + n)
            counts[chunk.state.id] = len(chunk.tokens)
            left -= n
        longer.append(chunk)
    return longer


def choose_rounds(logits: Tensor, chunks: Sequence[Chunk]) -> list[Round]:
    """The tokens of each chunk, from the logits [sum of their n_rows, vocabulary] of their last rows.

    Row i of a chunk is judged against the request's i-th pending draft, where there is one, else it chooses freely.
    """
    places = [(chunk.state, i) for chunk in chunks for i in range(chunk.n_rows)]
    plain = [row for row, (state, _) in enumerate(places) if not _drawn(state.drafting.pending)]
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
        drafts = chunk.state.drafting.pending[: chunk.n_rows]
        if _drawn(drafts):
            rounds.append(_judge_drawn(logits[start:end], chunk.state, drafts))
        else:
            rounds.append(_judge_certain([chosen[row] for row in range(start, end)], drafts))
    return rounds


def _drawn(drafts: Sequence[Draft]) -> bool:
    return bool(drafts) and drafts[0].probs is not None


def _judge_certain(chosen: list[int], drafts: Sequence[Draft]) -> Round:
    """Drafts that were not drawn: q is one-hot, greedy or not.

    The target's own choice decides. It agrees with probability p(draft), as the exact rule accepts, and where it does
    not it is distributed as the residual, p without the draft: the same rule, with one number for both decisions. So
    even a sampled answer stays what it is without drafts.
    """
    drafted = [draft.token for draft in drafts]
    if drafted == chosen:  # no row is left for a token of the target's own
        return Round(chosen, len(chosen))
    tokens = accept_greedy(drafted[: len(chosen) - 1], chosen)
    return Round(tokens, len(tokens) - 1)


def _judge_drawn(logits: Tensor, state: RequestState, drafts: Sequence[Draft]) -> Round:
    p = processed_probs(logits, state.request.sampling)
    q = torch.stack([draft.probs for draft in drafts if draft.probs is not None])
    first = state.n_output
    return speculative_round(
        p.double(),
        q.double(),
        [draft.token for draft in drafts],
        lambda i: state.uniform(first + i, "accept"),
        lambda i: state.uniform(first + i),
    )
