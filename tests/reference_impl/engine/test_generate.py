"""Generation with one request: the same tokens as recomputing everything, and the right end."""

from __future__ import annotations

import pytest
import torch
from model_files import random_model

from reference_impl.cache.recompute import Recompute
from reference_impl.decoding.sampling import SamplingParams, processed_probs, sample
from reference_impl.engine.generate import generate
from reference_impl.model.llama import Llama

PROMPT = [3, 1, 4, 1, 5]


def recomputed(model: Llama, prompt: list[int], params: SamplingParams, n_tokens: int) -> list[int]:
    """The whole sequence again for every token, without a cache."""
    tokens, numbers = list(prompt), params.generator()
    for _ in range(n_tokens):
        probs = processed_probs(model(Recompute(tokens))[-1], params)
        tokens.append(int(probs.argmax()) if params.greedy else int(sample(probs, numbers.random())))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(0.8, seed=3), SamplingParams(1.5, 20, 0.9, 4)])
def test_a_cache_gives_the_tokens_of_recomputing_everything(params: SamplingParams) -> None:
    model = random_model(dtype=torch.float64)
    assert list(generate(model, PROMPT, params, 20)) == recomputed(model, PROMPT, params, 20)


def test_generation_ends_before_an_end_token() -> None:
    model = random_model(dtype=torch.float64)
    tokens = recomputed(model, PROMPT, SamplingParams(), 20)
    end = next(i for i in range(5, 20) if tokens[i] not in tokens[:i])
    assert list(generate(model, PROMPT, SamplingParams(), 20, frozenset([tokens[end]]))) == tokens[:end]


def test_prompt_and_answer_may_fill_the_context_and_no_more() -> None:
    model = random_model()  # context 32
    assert len(list(generate(model, PROMPT, SamplingParams(), 27))) == 27
    with pytest.raises(ValueError, match="5 prompt tokens and 28 new ones exceed tiny's context of 32"):
        generate(model, PROMPT, SamplingParams(), 28)


def test_an_empty_prompt_and_no_tokens_are_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="the prompt has no tokens"):
        generate(random_model(), [], SamplingParams(), 5)
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got 0"):
        generate(random_model(), PROMPT, SamplingParams(), 0)
