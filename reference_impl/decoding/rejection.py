"""The exact acceptance rule of speculative decoding: rejection sampling that keeps the target's distribution.

A draft drew `token` from q, and the target's distribution at the same place is p. Accept the token with probability
min(1, p/q). If it is refused, draw from the residual max(p − q, 0), normalised. Accepted tokens supply min(p, q) and
draws after a refusal supply the rest of p, so the result has exactly the distribution p. Leviathan et al. 2023, "Fast
Inference from Transformers via Speculative Decoding", algorithm 1 and appendix A.1.

p and q must be the distributions that tokens are really drawn from, after temperature, top-k and top-p (`sampling`). A
greedy distribution is one-hot, and then the rule is "accept while they agree". Random numbers are arguments.
Distributions may be lists, NumPy arrays or tensors, and everything is computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from reference_impl.decoding.sampling import sample

Distribution = Any  # list, NumPy array or tensor of probabilities [vocabulary]


class Numbers(Protocol):
    """A source of numbers in [0, 1), such as `random.Random` or `numpy.random.Generator`."""

    def random(self) -> float: ...


@dataclass(frozen=True)
class Round:
    """The tokens of one round: `n_accepted` drafted ones, then at most one that the target chose."""

    tokens: list[int]
    n_accepted: int


def acceptance(p: Distribution, q: Distribution) -> float:
    """The probability that a token drawn from q is accepted: Σ min(p, q) (Leviathan et al. 2023, theorem 3.5).

    ValueError as in `accept_or_resample`.
    """
    return float(torch.minimum(*_pair(p, q)).sum())


def residual(p: Distribution, q: Distribution) -> Tensor:
    """max(p − q, 0), normalised, float64 [vocabulary]: the distribution that replaces a refused token.

    If p exceeds q nowhere, the two differ only by rounding, and the residual is p.
    """
    p, q = _pair(p, q)
    more = (p - q).clamp(min=0)
    total = more.sum()
    return more / total if total > 0 else p / p.sum()


def accept_or_resample(p: Distribution, q: Distribution, token: int, u: float, v: float) -> tuple[bool, int]:
    """(accepted, token) for one drafted `token` that was drawn from q, where the target wants p.

    u in [0, 1) decides: accepted if u < p/q. v in [0, 1) picks from the residual by its cumulative sum. ValueError for
    vocabularies of different size, for values that are no distribution, and for a token that q cannot have drawn.
    """
    p, q = _pair(p, q)
    token = int(token)
    if not 0 <= token < len(q):
        raise ValueError(f"token {token} is outside the vocabulary, 0..{len(q) - 1}")
    if not 0 <= u < 1:
        raise ValueError(f"u must lie in [0, 1), got {u}")
    if q[token] == 0:
        raise ValueError(
            f"q gives token {token} probability 0, so it was not drawn from q: q must be the distribution that the "
            "draft really drew from (after temperature, top-k and top-p; one-hot if greedy)"
        )
    if u < float(p[token]) / float(q[token]):
        return True, token
    return False, int(sample(residual(p, q), v))


def speculative_round(
    p: Tensor, q: Tensor, drafted: Sequence[int], u: Callable[[int], float], v: Callable[[int], float]
) -> Round:
    """One round: drafted tokens are accepted up to the first refusal, then the target adds a token of its own.

    p [k + 1, vocabulary]: the target after each prefix. q [k, vocabulary]: what each drafted token was drawn from. u(i)
    decides about drafted token i. v(i) picks the token that ends the round at place i: from the residual if drafted
    token i was refused, from p itself if all were accepted (the bonus token). u and v are called only when their number
    is used. With k rows of p there is no bonus token, because the round goes on in the next pass. ValueError for any
    other shape.
    """
    if len(q) != len(drafted) or len(p) - len(drafted) not in (0, 1) or p.shape[1:] != q.shape[1:]:
        raise ValueError(
            f"{len(drafted)} drafted tokens need as many rows of q and at most one more of p, over one vocabulary; "
            f"got p {list(p.shape)} and q {list(q.shape)}"
        )
    chosen = torch.tensor(drafted, dtype=torch.int64, device=p.device).unsqueeze(-1)
    wanted = p[: len(drafted)].gather(-1, chosen).flatten().tolist()
    drawn_with = q.gather(-1, chosen).flatten().tolist()
    for i, token in enumerate(drafted):
        if drawn_with[i] == 0:
            raise ValueError(f"drafted token {token} at place {i} has probability 0 in q: it was not drawn from q")
        if not u(i) < wanted[i] / drawn_with[i]:
            return Round([*drafted[:i], int(sample(residual(p[i], q[i]), v(i)))], i)
    if len(p) == len(drafted):
        return Round([*drafted], len(drafted))
    return Round([*drafted, int(sample(p[-1].double(), v(len(drafted))))], len(drafted))


def speculative_generate(
    target: Callable[[list[int]], Any],
    draft: Callable[[list[int]], Any],
    prompt: Sequence[int],
    k: int,
    n_tokens: int,
    rng: Numbers,
) -> tuple[list[int], int]:
    """(the `n_tokens` tokens that follow the prompt, passes of the target), with up to k drafted tokens a round.

    `target(tokens)` and `draft(tokens)` give the next-token distribution after each prefix, [len(tokens), vocabulary].
    Nothing is cached: this is the loop of the paper, and the engine does the same with caches and batches. Every
    drafted token takes one number from `rng`, every judged one takes another, and every round takes one more.
    ValueError without a prompt.
    """
    if not prompt or k < 0 or n_tokens < 0:
        raise ValueError(f"needs a prompt, k >= 0 and n_tokens >= 0; got {len(prompt)} tokens, k={k}, {n_tokens=}")
    tokens, passes = list(prompt), 0
    while (left := len(prompt) + n_tokens - len(tokens)) > 0:
        drafted: list[int] = []
        q: list[Tensor] = []
        for _ in range(min(k, left - 1)):  # the target adds one in each round
            q.append(_tensor(draft([*tokens, *drafted])[-1]))
            drafted.append(int(sample(q[-1], rng.random())))
        p = _tensor(target([*tokens, *drafted]))[len(tokens) - 1 :]
        passes += 1
        rows = torch.stack(q) if q else p[:0]
        tokens += speculative_round(p, rows, drafted, lambda _: rng.random(), lambda _: rng.random()).tokens
    return tokens[len(prompt) :], passes


def _tensor(values: Distribution) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def _pair(p: Distribution, q: Distribution) -> tuple[Tensor, Tensor]:
    p, q = _tensor(p), _tensor(q)
    if p.dim() != 1 or p.shape != q.shape:
        raise ValueError(f"p and q must be over one vocabulary, got {list(p.shape)} and {list(q.shape)} probabilities")
    for name, values in (("p", p), ("q", q)):
        if not (values >= 0).all() or not 0 < values.sum() < torch.inf:
            raise ValueError(f"{name} is no distribution: {values.tolist() if len(values) < 9 else values}")
    return p, q
