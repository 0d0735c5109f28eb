"""How often drafts are accepted, by position and by kind of text, and how far the textbook formula can be trusted.

Greedy speculation can be measured without running the target again: its answer is known from one plain run, and any
draft source, at any draft length, can be replayed against that answer. The formula (1 − α^(k+1))/(1 − α) treats
acceptances as independent throws of one coin, which they are not. Easy and hard places come in streaks, and every round
starts right after a rejection or at the end of a round. So this counts acceptance by position in the round, and how
much one acceptance says about the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from reference_impl.benchmarks.speculation.prompts import KINDS, prompt_ids
from reference_impl.bounds.arithmetic import expected_tokens
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints.weights import Loaded
from reference_impl.decoding.sampling import SamplingParams, processed_probs
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import FinishReason, Request
from reference_impl.model.llama import Llama
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import DraftSource, Wanted
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import SpeculationStats

BLOCK_SIZE = 16
GREEDY = SamplingParams()


@dataclass(frozen=True)
class Answer:
    """A prompt and what the target wrote after it, as token ids."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Acceptance:
    """The fate of the drafts. `rounds`: for each answer, (drafted, accepted) of every pass of the target."""

    k: int
    rounds: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def stats(self) -> SpeculationStats:
        """The same counters that an engine keeps."""
        stats = SpeculationStats()
        for drafted, accepted in (one for answer in self.rounds for one in answer):
            stats.n_rounds += drafted > 0
            stats.n_drafted += drafted
            stats.n_passes += 1
            stats.n_tokens += accepted + 1
            stats.count(0, min(drafted, accepted + 1), accepted)
        return stats

    @property
    def alpha(self) -> float:
        """Accepted over judged drafts, which the formula takes for α. 0 if nothing was drafted."""
        return self.stats.acceptance or 0.0

    @property
    def tokens_per_pass(self) -> float:
        return self.stats.tokens_per_pass or 1.0

    @property
    def formula(self) -> float:
        """Tokens a pass if acceptances were independent with probability α; each round with its own drafted count."""
        counts = [drafted for answer in self.rounds for drafted, _ in answer]
        return sum(expected_tokens(self.alpha, n) for n in counts) / len(counts) if counts else 1.0

    @property
    def autocorrelation(self) -> float:
        """Correlation of one judged draft with the next of the same answer, -1 to 1; 0 if they were independent."""
        pairs = [pair for answer in self.rounds for pair in _successive(_judged(answer))]
        if not pairs:
            return 0.0
        first, second = (torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True))
        spread = first.std(correction=0) * second.std(correction=0)
        return float(((first - first.mean()) * (second - second.mean())).mean() / spread) if spread > 0 else 0.0

    @property
    def autocorrelation_error(self) -> float:
        """The standard error of `autocorrelation` under independence: 1/√n."""
        return 1 / math.sqrt(max(1, sum(len(_successive(_judged(answer))) for answer in self.rounds)))


@torch.inference_mode()
def write_answers(
    target: Llama,
    prompts: Sequence[Sequence[int]],
    n_tokens: int,
    stop: frozenset[int] = frozenset(),
    sampling: SamplingParams = GREEDY,
) -> list[Answer]:
    """The target's answers without drafts, all in one batch; they end with a token of `stop` or after `n_tokens`."""
    total = sum(map(len, prompts))
    n_blocks = sum(-(-(len(prompt) + n_tokens) // BLOCK_SIZE) for prompt in prompts)
    config = EngineConfig(
        max_running=len(prompts), token_budget=max(total, len(prompts)), block_size=BLOCK_SIZE, n_blocks=n_blocks
    )
    requests = [Request(i, tuple(prompt), n_tokens, sampling, stop) for i, prompt in enumerate(prompts)]
    found = Engine.for_llama(target, config).run(requests)
    for i, answer in found.items():
        if answer.finish not in (FinishReason.STOP, FinishReason.LENGTH):
            raise ValueError(f"prompt {i} has no answer: {answer.reason}")
    return [Answer(tuple(prompt), found[i].tokens) for i, prompt in enumerate(prompts)]


def replay(source: DraftSource, answers: Sequence[Answer], k: int) -> Acceptance:
    """The rounds that greedy speculation with k drafts would have made of these answers, all of them side by side.

    As in the engine, the first token of an answer comes with the prompt. Of the tokens that are left, a round drafts
    all but the one that the target adds.
    """
    places = [len(answer.prompt) + 1 for answer in answers]
    texts = [answer.prompt + answer.tokens for answer in answers]
    rounds: list[list[tuple[int, int]]] = [[] for _ in answers]
    while open_ones := [i for i, place in enumerate(places) if place < len(texts[i])]:
        orders = [
            Wanted(i, texts[i][: places[i]], n, GREEDY, lambda _: 0.0)
            for i in open_ones
            if (n := min(k, len(texts[i]) - places[i] - 1)) > 0
        ]
        drafts = dict(zip([order.id for order in orders], source.propose(orders), strict=True)) if orders else {}
        for i in open_ones:
            drafted = [draft.token for draft in drafts.get(i, [])]
            accepted = 0
            while accepted < len(drafted) and drafted[accepted] == texts[i][places[i] + accepted]:
                accepted += 1
            rounds[i].append((len(drafted), accepted))
            places[i] += accepted + 1
    for i in range(len(answers)):
        source.forget(i)
    return Acceptance(k, tuple(map(tuple, rounds)))


def draft_source(draft: str | Llama, n_sequences: int = 1, n_tokens: int = 512) -> DraftSource:
    """Look-up for "ngram", else drafts from the model, with a cache for `n_sequences` of `n_tokens` tokens."""
    if isinstance(draft, str):
        if draft != "ngram":
            raise ValueError(f"a draft is 'ngram' or a model, got {draft!r}")
        return NgramDraft()
    return ModelDraft.for_llama(draft, n_sequences * -(-n_tokens // BLOCK_SIZE), BLOCK_SIZE)


def by_kind(
    target: Loaded, draft: str | Llama, k: int = 4, n_tokens: int = 64, kinds: Sequence[str] = KINDS
) -> dict[str, Acceptance]:
    """Greedy acceptance for each kind of text, on the shipped prompts. `draft`: "ngram", or a model."""
    found = {}
    for kind in kinds:
        prompts = prompt_ids(kind, target.tokenizer)
        answers = write_answers(target.model, prompts, n_tokens, target.tokenizer.eos_ids)
        longest = max(len(answer.prompt) + len(answer.tokens) for answer in answers)
        found[kind] = replay(draft_source(draft, len(answers), longest), answers, k)
    return found


@torch.inference_mode()
def overlaps(target: Llama, draft: Llama, answer: Answer, params: SamplingParams) -> list[float]:
    """Σ min(p, q) at each place of an answer: the probability that a drafted token would be accepted there.

    Its mean over answers that were drawn with the same `params` is the α of Leviathan et al. 2023.
    """
    text = answer.prompt + answer.tokens
    batch = Recompute(text[:-1])
    rows = torch.arange(len(answer.prompt) - 1, len(text) - 1)
    p, q = (processed_probs(model(batch, rows), params).double() for model in (target, draft))
    return torch.minimum(p, q).sum(dim=-1).tolist()


def _judged(answer: Sequence[tuple[int, int]]) -> list[int]:
    """1 for each accepted draft and 0 for each refused one, in order. Drafts after a refusal are not judged."""
    return [int(i < accepted) for drafted, accepted in answer for i in range(min(drafted, accepted + 1))]


def _successive(values: Sequence[int]) -> list[tuple[int, int]]:
    return list(pairwise(values))
