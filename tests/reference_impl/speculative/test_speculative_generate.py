"""Generation with drafts for one request: the tokens of generation without them."""

from __future__ import annotations

import pytest
import torch
from model_files import random_model

from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.generate import generate
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import DraftSource
from reference_impl.speculative.generate import generate_with_drafts
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, Speculator

PROMPT = [3, 1, 4, 1, 5]


@pytest.mark.parametrize("draft", ["ngram", "itself"])
@pytest.mark.parametrize("max_tokens", [1, 2, 20, 27])
def test_greedy_tokens_are_those_of_generate(draft: str, max_tokens: int) -> None:
    model = random_model(dtype=torch.float64)
    source: DraftSource = NgramDraft() if draft == "ngram" else ModelDraft.for_llama(model, 2)
    tokens = generate_with_drafts(model, PROMPT, SamplingParams(), max_tokens, Speculator(source))
    assert list(tokens) == list(generate(model, PROMPT, SamplingParams(), max_tokens))


def test_looked_up_drafts_keep_sampled_tokens_as_they_are() -> None:
    model, params = random_model(dtype=torch.float64), SamplingParams(1.0, seed=3)
    tokens = list(generate_with_drafts(model, PROMPT, params, 20, Speculator(NgramDraft())))
    assert tokens == list(generate(model, PROMPT, params, 20))


def test_the_answer_ends_before_an_end_token_inside_a_draft() -> None:
    model = random_model(dtype=torch.float64)
    plain = list(generate(model, PROMPT, SamplingParams(), 20))
    end = next(i for i in range(5, 20) if plain[i] not in plain[:i])
    speculator = Speculator(ModelDraft.for_llama(model, 2), DraftLength(19))
    tokens = generate_with_drafts(model, PROMPT, SamplingParams(), 20, speculator, frozenset([plain[end]]))
    assert list(tokens) == plain[:end]


def test_a_request_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="5 prompt tokens and 28 new ones exceed tiny's context of 32"):
        generate_with_drafts(random_model(), PROMPT, SamplingParams(), 28, Speculator(NgramDraft()))
