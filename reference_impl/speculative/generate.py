"""Generates for one request with drafts: an engine with a speculator that serves a single user.

A greedy answer is that of `engine.generate`, token by token, and so is a sampled one with drafts by look-up. If a model
draws the drafts, a sampled answer is another sample of the same distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.generate import require_room
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama
from reference_impl.speculative.speculator import Speculator

BLOCK_SIZE = 16


def generate_with_drafts(
    model: Llama,
    prompt: Sequence[int],
    params: SamplingParams,
    max_tokens: int,
    speculator: Speculator,
    eos_ids: frozenset[int] = frozenset(),
) -> Iterator[int]:
    """Yields token ids, a round at a time. Arguments and errors are those of `engine.generate`."""
    require_room(model, prompt, max_tokens)
    n_blocks = -(-(len(prompt) + max_tokens) // BLOCK_SIZE)
    config = EngineConfig(max_running=1, block_size=BLOCK_SIZE, n_blocks=n_blocks)
    engine = Engine.for_llama(model, config, strategy=speculator)
    if params.seed is None:
        params = replace(params, seed=params.generator().getrandbits(63))
    engine.add(Request("only", tuple(prompt), max_tokens, params, stop_tokens=eos_ids))
    return _steps(engine, eos_ids)


def _steps(engine: Engine, eos_ids: frozenset[int]) -> Iterator[int]:
    while not engine.idle:
        for output in engine.step():
            yield from (token for token in output.tokens if token not in eos_ids)
