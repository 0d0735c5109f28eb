"""What the tests of speculative decoding share: drafts that are right most of the time, and engines that use them."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from serving_oracle import TINY, Solo, tiny_model

from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import Draft, DraftSource, Wanted
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, Speculator


class MostlyRight:
    """Knows every answer, and drafts a wrong token at about one place in four; nothing where it knows no more."""

    vocab_size = TINY.vocab_size

    def __init__(self, answers: dict[Hashable, tuple[Request, Solo]], wrong: float = 0.25) -> None:
        self.answers, self.wrong = answers, wrong

    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        return [self._draft(order) for order in wanted]

    def _draft(self, order: Wanted) -> list[Draft]:
        request, solo = self.answers[order.id]
        first = len(order.tokens) - len(request.prompt)
        drafts = []
        for place, token in list(enumerate(solo.tokens))[first : first + order.n]:
            numbers = random.Random(f"{request.prompt} {place}")
            wrong = numbers.random() < self.wrong
            drafts.append(Draft((token + numbers.randrange(1, 19)) % 19 if wrong else token))
        return drafts

    def forget(self, request_id: Hashable) -> None:
        pass


class Script:
    """Drafts what it is told, order by order; then nothing."""

    vocab_size = None

    def __init__(self, *rounds: Sequence[int]) -> None:
        self.rounds = list(rounds)
        self.forgotten: list[Hashable] = []

    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        return [[Draft(token) for token in (self.rounds.pop(0) if self.rounds else ())[: order.n]] for order in wanted]

    def forget(self, request_id: Hashable) -> None:
        self.forgotten.append(request_id)


@cache
def other_model() -> Llama:
    """The tiny model with noise on its weights: it agrees with the tiny model often, not always."""
    model = Llama(TINY, dtype=torch.float64).randomize(torch.Generator().manual_seed(6), std=0.15)
    for weight, target in zip(model.parameters(), tiny_model().parameters(), strict=True):
        weight.copy_(target + weight if weight.dim() == 2 else target)
    return model


def with_rows(n_rows: int) -> Llama:
    """The tiny model with its tables cut or padded to so many rows; the padding has the largest logits of all."""
    shape = replace(TINY, vocab_size=n_rows)
    model = Llama(shape, dtype=torch.float64).randomize(torch.Generator().manual_seed(8), std=2.0)
    for name, view in model.views().items():
        known = tiny_model().views()[name]
        view[: len(known)] = known[: len(view)]
    return model


def source(name: str, answers: dict[Hashable, tuple[Request, Solo]]) -> DraftSource:
    makers: dict[str, Callable[[], DraftSource]] = {
        "mostly right": lambda: MostlyRight(answers),
        "n-gram": NgramDraft,
        "other model": lambda: ModelDraft.for_llama(other_model(), n_blocks=40, block_size=4),
        "itself": lambda: ModelDraft.for_llama(tiny_model(), n_blocks=40, block_size=4),
    }
    return makers[name]()


def speculating(draft: DraftSource, length: DraftLength | int = 4, **switches: Any) -> Engine:
    """The tiny engine of `serving_oracle` with a draft."""
    config = EngineConfig(**({"token_budget": 32, "n_blocks": 64, "keep_logits": True, "debug": True} | switches))
    if isinstance(length, int):
        length = DraftLength(length)
    return Engine.for_llama(tiny_model(), config, strategy=Speculator(draft, length))


def speculator_of(engine: Engine) -> Speculator:
    assert isinstance(engine.strategy, Speculator)
    return engine.strategy
