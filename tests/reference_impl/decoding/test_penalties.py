"""Penalties, biases, log-probabilities: written-out examples, and answers that depend on no company and no drafts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from serving_oracle import TINY, tiny_model
from speculative_cases import other_model

from reference_impl.cache.recompute import Recompute
from reference_impl.decoding.logprobs import logprobs_of
from reference_impl.decoding.penalties import Penalties, penalize
from reference_impl.decoding.sampling import SamplingParams, processed_probs
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine, RequestRefusedError
from reference_impl.engine.request import Request
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, Speculator


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Penalties(presence=0.5), [2.0, -1.5, 0.5, 3.0]),  # the answer holds tokens 1 and 2
        (Penalties(frequency=0.5), [2.0, -2.0, 0.5, 3.0]),  # token 1 twice
        (Penalties(presence=0.25, frequency=-1.0), [2.0, 0.75, 1.75, 3.0]),
        (Penalties(repetition=2.0), [1.0, -2.0, 0.5, 3.0]),  # prompt and answer hold 0, 1 and 2
        (Penalties(bias=((3, -100.0), (0, 1.0))), [3.0, -1.0, 1.0, -97.0]),
        (Penalties(repetition=2.0, bias=((0, 2.0),)), [2.0, -2.0, 0.5, 3.0]),  # the bias comes first
    ],
)
def test_each_penalty_changes_the_logits_that_it_should(wanted: Penalties, expected: list[float]) -> None:
    logits = torch.tensor([[9.0, 9.0, 9.0, 9.0], [2.0, -1.0, 1.0, 3.0]])
    penalize(logits, 1, wanted, prompt=[0, 0], answer=[1, 2, 1])
    assert logits.tolist() == [[9.0, 9.0, 9.0, 9.0], expected]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"presence": math.nan}, "the presence penalty must be a finite number, got nan"),
        ({"frequency": math.inf}, "the frequency penalty must be a finite number"),
        ({"repetition": 0.0}, "the repetition penalty must be a number above 0, got 0.0"),
        ({"bias": ((7, math.nan),)}, "the bias of token 7 must be a finite number, got nan"),
    ],
)
def test_a_penalty_that_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Penalties(**settings)


def test_min_p_keeps_tokens_at_least_so_likely_beside_the_likeliest() -> None:
    """Of 0.5, 0.3, 0.15 and 0.05 the last two are less than half as likely as the first."""
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    probs = processed_probs(logits, SamplingParams(1.0, min_p=0.5))
    torch.testing.assert_close(probs, torch.tensor([0.625, 0.375, 0.0, 0.0]))
    with pytest.raises(ValueError, match="min_p must be a number from 0 to 1, got 2"):
        SamplingParams(min_p=2)


def test_log_probabilities_are_those_of_the_chosen_token_and_of_the_likeliest() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]).log() + 3
    first, second = logprobs_of(logits, [1, 2], 2)
    assert (first.token, first.logprob) == (1, pytest.approx(math.log(0.25)))
    assert [token for token, _ in second.top] == [2, 1]
    assert [value for _, value in second.top] == [pytest.approx(math.log(0.7)), pytest.approx(math.log(0.2))]
    assert logprobs_of(logits, [0, 0], 0)[0].top == ()


WISHES = {
    "presence": Penalties(presence=1.5),
    "frequency": Penalties(frequency=0.8),
    "repetition": Penalties(repetition=1.3),
    "bias": Penalties(bias=((3, 4.0), (5, -100.0))),
    "all": Penalties(0.5, 0.5, 1.2, ((7, 2.0),)),
}


def alone(request: Request) -> list[int]:
    """The answer by recomputing everything for every token; greedy, so that no random number takes part."""
    answer: list[int] = []
    assert request.max_tokens is not None
    assert request.sampling.penalties is not None
    with torch.no_grad():
        while len(answer) < request.max_tokens:
            logits = tiny_model()(Recompute([*request.prompt, *answer]))[-1:].clone()
            penalize(logits, 0, request.sampling.penalties, request.prompt, answer)
            answer.append(int(logits[0].argmax()))
    return answer


def wishing(name: str, temperature: float = 0.0) -> Request:
    prompt = (1, 2, 3, 1, 2, 3, len(name))
    return Request(name, prompt, 14, SamplingParams(temperature, seed=9, min_p=0.02, penalties=WISHES[name]))


@pytest.mark.parametrize("drafts", ["none", "look-up", "model"])
def test_penalized_answers_are_those_of_the_request_alone_with_and_without_drafts(drafts: str) -> None:
    sources: dict[str, Any] = {"look-up": NgramDraft, "model": lambda: ModelDraft.for_llama(other_model(), 40, 4)}
    strategy = None if drafts == "none" else Speculator(sources[drafts](), DraftLength(3))
    config = EngineConfig(max_running=5, token_budget=20, chunk_size=3, n_blocks=64)
    engine = Engine.for_llama(tiny_model(), config, strategy=strategy)
    found = engine.run([wishing(name) for name in WISHES])
    assert {name: list(done.tokens) for name, done in found.items()} == {name: alone(wishing(name)) for name in WISHES}


def test_a_seeded_penalized_answer_does_not_depend_on_its_company() -> None:
    requests = [wishing(name, temperature=1.0) for name in WISHES]
    config = EngineConfig(max_running=5, token_budget=20, n_blocks=64)
    together = Engine.for_llama(tiny_model(), config).run(requests)
    for request in requests:
        assert Engine.for_llama(tiny_model(), config).run([request])[request.id].tokens == together[request.id].tokens


@pytest.mark.parametrize("drafts", [False, True])
def test_the_told_log_probabilities_are_the_models_own(drafts: bool) -> None:
    """Temperature and penalties choose the tokens and leave the log-probabilities alone."""
    strategy = Speculator(NgramDraft()) if drafts else None
    engine = Engine.for_llama(tiny_model(), EngineConfig(n_blocks=64), strategy=strategy)
    engine.add(replace(wishing("all", temperature=0.8), logprobs=4))
    told = [one for _ in iter(lambda: engine.idle, True) for output in engine.step() for one in output.logprobs]
    assert len(told) == 14
    tokens = [*wishing("all").prompt, *(one.token for one in told)]
    with torch.no_grad():
        expected = tiny_model()(Recompute(tokens)).log_softmax(-1)[-15:-1]
    for one, row in zip(told, expected, strict=True):
        assert one.logprob == pytest.approx(float(row[one.token]), abs=1e-9)
        assert [value for _, value in one.top] == pytest.approx(row.sort(descending=True).values[:4].tolist(), abs=1e-9)


def test_a_biased_token_outside_the_vocabulary_is_refused() -> None:
    engine = Engine.for_llama(tiny_model(), EngineConfig(n_blocks=64))
    wanted = SamplingParams(penalties=Penalties(bias=((TINY.vocab_size, 1.0),)))
    with pytest.raises(RequestRefusedError, match=r"biased token 19 is outside 0\.\.18"):
        engine.add(Request("r", (1,), sampling=wanted))
