"""One request with drafts: the engine, with a speculator, serving a single user.

The counterpart of `generate.generate`, and the same tokens: greedy always, sampled ones where the drafts are looked up
(where a model draws them, they are another draw of the same distribution).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.checkpoints.weights import load
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.generate import require_room
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, SpeculationStats, Speculator

BLOCK_SIZE = 16


def speculator(draft: str, n_drafted: int, model: Llama, tokenizer: Tokenizer, n_tokens: int) -> Speculator:
    """Drafts for `model`: by look-up if `draft` is "ngram", else with the model of that name, file or folder.

    `n_tokens`: room that the draft's cache needs. ValueError if the two do not share one tokenizer.
    """
    length = DraftLength(n_drafted)
    if draft == "ngram":
        return Speculator(NgramDraft(), length)
    small, its_tokenizer = load(draft, model.embed.dtype, model.embed.device)
    if its_tokenizer.backend.get_vocab() != tokenizer.backend.get_vocab():
        raise ValueError(f"--draft {draft}: its tokenizer is not the model's, so its tokens mean something else")
    return Speculator(ModelDraft.for_llama(small, _n_blocks(n_tokens), BLOCK_SIZE), length)


def generate_with_drafts(
    model: Llama,
    prompt: Sequence[int],
    params: SamplingParams,
    max_tokens: int,
    speculator: Speculator,
    eos_ids: frozenset[int] = frozenset(),
) -> Iterator[int]:
    """Yields token ids as `generate.generate` does, a round at a time. ValueError as there."""
    require_room(model, prompt, max_tokens)
    config = EngineConfig(max_running=1, block_size=BLOCK_SIZE, n_blocks=_n_blocks(len(prompt) + max_tokens))
    engine = Engine.for_llama(model, config, speculator=speculator)
    if params.seed is None:
        params = replace(params, seed=params.generator().getrandbits(63))
    engine.add(Request("only", tuple(prompt), max_tokens, params, stop_tokens=eos_ids))
    return _steps(engine, eos_ids)


def _steps(engine: Engine, eos_ids: frozenset[int]) -> Iterator[int]:
    while not engine.idle:
        for output in engine.step():
            yield from (token for token in output.tokens if token not in eos_ids)


def summary(stats: SpeculationStats) -> str:
    """What the drafts brought, in one line."""
    if not stats.n_passes:
        return "drafts: none were needed"
    accepted = f"{sum(stats.accepted)} of {stats.n_drafted} drafted tokens accepted"
    return f"drafts: {accepted}, {stats.tokens_per_pass:.2f} tokens a pass"


def _n_blocks(n_tokens: int) -> int:
    return -(-n_tokens // BLOCK_SIZE)
