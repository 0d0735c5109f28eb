"""What the serving tests share: a tiny model in float64, a fixed pool of requests, and their answers computed alone
and without a cache.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.interface import ForwardBatch
from reference_impl.cache.recompute import Recompute
from reference_impl.decoding.sampling import SamplingParams, processed_probs, sample
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama

TINY = ModelConfig(
    "tiny", n_layers=2, d_model=16, n_heads=4, n_kv_heads=2, head_dim=4, d_ff=24, vocab_size=19, max_context=640
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The tensors here are so small that a second thread only costs time."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@cache
def tiny_model() -> Llama:
    return Llama(TINY, dtype=torch.float64).randomize(torch.Generator().manual_seed(5), std=0.4)


def tiny_engine(**switches: object) -> Engine:
    return Engine.for_llama(
        tiny_model(), EngineConfig(**({"token_budget": 32, "keep_logits": True, "debug": True} | switches))
    )  # type: ignore[arg-type]


class NextToken:
    """A model that always wants the next number: logits are 1 for (token + 1) mod vocabulary. It uses no cache."""

    def __init__(self, vocab_size: int = 19) -> None:
        self.vocab_size = vocab_size
        self.eye = torch.eye(vocab_size, dtype=torch.float64)

    def __call__(self, batch: ForwardBatch, rows: Tensor) -> Tensor:
        return self.eye[(batch.tokens[rows] + 1) % self.vocab_size]


@dataclass(frozen=True)
class Solo:
    """A request's answer when nothing else is in the world."""

    tokens: tuple[int, ...]
    logits: Tensor  # [len(tokens), vocabulary]
    finish: str


@torch.no_grad()
def solo_run(request: Request) -> Solo:
    """Recomputes the whole sequence for every token; token i is chosen by the i-th number of `random.Random(seed)`."""
    model, params = tiny_model(), request.sampling
    numbers = random.Random(params.seed)
    answer: list[int] = []
    logits: list[Tensor] = []
    assert request.max_tokens is not None
    finish = "length"
    while len(answer) < request.max_tokens:
        last = model(Recompute([*request.prompt, *answer]))[-1:]
        number = numbers.random()
        if params.temperature == 0:
            token = int(last[0].argmax())
        else:
            token = int(sample(processed_probs(last, params), torch.tensor([number], dtype=torch.float64))[0])
        answer.append(token)
        logits.append(last)
        if token in request.stop_tokens:
            finish = "stop"
            break
    return Solo(tuple(answer), torch.cat(logits), finish)


@cache
def pool() -> list[tuple[Request, Solo]]:
    """24 requests with their answers: prompts of 1 to 20 tokens, half of them with a common beginning; greedy and
    sampled.
    """
    numbers = random.Random(7)
    common = [numbers.randrange(TINY.vocab_size) for _ in range(16)]
    requests = []
    for i in range(24):
        shared = common[: numbers.choice([4, 8, 12, 16])] if i % 2 else []
        prompt = shared + [numbers.randrange(TINY.vocab_size) for _ in range(numbers.randint(1, 20 - len(shared)))]
        sampling = SamplingParams(
            temperature=numbers.choice([0.0, 0.0, 0.7, 1.0, 1.5]),
            top_k=numbers.choice([0, 0, 5]),
            top_p=numbers.choice([1.0, 1.0, 0.8]),
            seed=i,
        )
        stop = frozenset(numbers.sample(range(TINY.vocab_size), 2)) if i % 3 == 0 else frozenset()
        requests.append(Request(i, tuple(prompt), numbers.randint(1, 12), sampling, stop_tokens=stop))
    return [(request, solo_run(request)) for request in requests]


def renamed(request: Request, request_id: object) -> Request:
    return replace(request, id=request_id)  # type: ignore[arg-type]


def blocks_in_use(engine: Engine) -> int:
    """Blocks that belong to some sequence (what prefix sharing keeps for later is free to be evicted)."""
    return engine.config.n_blocks - engine.cache.free_blocks  # type: ignore[attr-defined]
