"""Generates for one request: a prefill of the whole prompt, then decode steps of one token each, with a KV cache.

Nothing is batched here. `engine` does the same for many requests at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.decoding.sampling import SamplingParams, next_token
from reference_impl.model.fused import fused
from reference_impl.model.llama import Llama
from reference_impl.model.replay import RecordedPasses


def generate(
    model: Llama, prompt: Sequence[int], params: SamplingParams, max_tokens: int, eos_ids: frozenset[int] = frozenset()
) -> Iterator[int]:
    """Yields token ids as they are generated: at most max_tokens, ending before a token of eos_ids.

    ValueError if there is no prompt, or if prompt and answer together exceed the model's context.
    """
    require_room(model, prompt, max_tokens)
    return _loop(model, prompt, params, max_tokens, eos_ids)


def require_room(model: Llama, prompt: Sequence[int], max_tokens: int) -> None:
    """ValueError if there is no prompt, or if prompt and answer together exceed the model's context."""
    longest = model.config.max_context
    if not prompt:
        raise ValueError("the prompt has no tokens: there is nothing to continue")
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, got {max_tokens}")
    if len(prompt) + max_tokens > longest:
        raise ValueError(
            f"{len(prompt)} prompt tokens and {max_tokens} new ones exceed {model.config.name}'s context of {longest}"
        )


@torch.inference_mode()
def _loop(
    model: Llama, prompt: Sequence[int], params: SamplingParams, max_tokens: int, eos_ids: frozenset[int]
) -> Iterator[int]:
    cache = ContiguousCache(model.config, 1, len(prompt) + max_tokens, model.embed.dtype, model.embed.device)
    cache.add("only")
    forward = RecordedPasses(fused(model))
    numbers = params.generator()
    new: Sequence[int] = prompt  # the first pass is the prefill
    for _ in range(max_tokens):
        batch = cache.extend([("only", new)])
        logits = forward(batch, batch.last_rows)
        cache.commit(batch)
        token = next_token(logits[0], params, numbers)
        if token in eos_ids:
            return
        yield token
        new = [token]
