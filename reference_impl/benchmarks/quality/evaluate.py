"""How much quantization has changed a model: against the text (bits per byte), and against the float model.

Perplexity on a little text is noisy and can even improve by luck. The Kullback-Leibler divergence from the float
model's next-token distribution to the quantized one's uses the whole distribution at every token and is 0 only if
nothing changed, so it shows damage first. The float model's last hidden states are kept instead of its logits, which
would be 85 times as large for SmolLM2; both models share one output head.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.model.llama import Llama
from reference_impl.quantization.forward import Tokens, hidden_states

_ROWS = 256  # rows of logits at a time


@dataclass(frozen=True)
class WindowScore:
    """One window of text: all its tokens but the first, which nothing predicts. Sums, so that windows add up."""

    n_tokens: int
    n_bytes: int
    nats: float  # minus the log-probabilities of the text's tokens
    kl: float  # nats, from the float model's distribution
    same: int  # places where both models find the same token the likeliest


@dataclass(frozen=True)
class Score:
    """Several windows together."""

    n_tokens: int
    bits_per_byte: float
    perplexity: float  # per token; comparable only between models of one tokenizer
    kl: float  # nats a token; 0 for the float model itself
    kl_error: float  # standard error of `kl`, from one window to the next
    agreement: float  # share of tokens with the same most likely token


@dataclass(frozen=True)
class Item:
    """A text in which some tokens are answers. `scored`: their places, none of them 0."""

    tokens: list[int]
    scored: list[int]


@torch.no_grad()
def score(
    model: Llama, ours: Sequence[Tensor], reference: Sequence[Tensor], windows: Sequence[Tokens], tokenizer: Tokenizer
) -> list[WindowScore]:
    """Scores the `hidden_states` of a quantized model on windows of token ids against those of the float model.

    `model` lends its output head, which is not quantized and which both share. ValueError without windows, or for one
    without a second token.
    """
    if not windows or min(map(len, windows)) < 2:
        raise ValueError("scoring needs windows of at least two tokens")
    scores = []
    for found, theirs, window in zip(ours, reference, windows, strict=True):
        nats, kl, same = 0.0, 0.0, 0
        targets = torch.tensor(window[1:], device=found.device)
        parts = zip(found[:-1].split(_ROWS), theirs[:-1].split(_ROWS), targets.split(_ROWS), strict=True)
        for x, x_reference, target in parts:
            log_q = model.head(x).log_softmax(-1)
            log_p = model.head(x_reference).log_softmax(-1)
            nats -= float(log_q.gather(1, target[:, None]).double().sum())
            kl += float((log_p.exp() * (log_p - log_q)).sum(-1).double().sum())
            same += int((log_q.argmax(-1) == log_p.argmax(-1)).sum())
        n_bytes = sum(len(tokenizer.token_bytes(token)) for token in window[1:])
        scores.append(WindowScore(len(window) - 1, n_bytes, nats, kl, same))
    return scores


def together(scores: Sequence[WindowScore]) -> Score:
    """One score for all windows, in which every token counts alike."""
    n_tokens = sum(one.n_tokens for one in scores)
    nats = sum(one.nats for one in scores)
    each = [one.kl / one.n_tokens for one in scores]
    return Score(
        n_tokens=n_tokens,
        bits_per_byte=nats / math.log(2) / sum(one.n_bytes for one in scores),
        perplexity=math.exp(nats / n_tokens),
        kl=sum(one.kl for one in scores) / n_tokens,
        kl_error=statistics.stdev(each) / len(each) ** 0.5 if len(each) > 1 else 0.0,
        agreement=sum(one.same for one in scores) / n_tokens,
    )


@torch.no_grad()
def accuracy(model: Llama, items: Sequence[Item]) -> float:
    """Share of the scored tokens that the model finds the likeliest, given all the right tokens before them."""
    states = hidden_states(model, [item.tokens for item in items])
    right = 0
    for state, item in zip(states, items, strict=True):
        guesses = model.head(state[[place - 1 for place in item.scored]]).argmax(-1)
        right += int((guesses.cpu() == torch.tensor([item.tokens[place] for place in item.scored])).sum())
    return right / sum(len(item.scored) for item in items)
