"""Speculation on a GPU with acceptance set by construction: is the measured speed-up the predicted one?

Two random models never agree, and nobody can set how often two real ones agree. So both models run at their full shapes
for their time alone, and a script decides what they say. The target wants the script's token at each place, and the
draft says the same with probability α, independently at each place. The formula's assumption then holds by
construction, and the test is one of the arithmetic of costs (Leviathan et al. 2023, theorem 3.8).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from reference_impl.benchmarks.harness.result import Save, Section, Target, forget
from reference_impl.benchmarks.speculation.costs import compare, measure_costs
from reference_impl.benchmarks.speculation.measure import Answer
from reference_impl.bounds.arithmetic import best_draft_length
from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.common.clock import Clock
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch

ALPHAS = (0.6, 0.8, 0.9)
WITHIN = 0.15  # of the predicted speed-up
MOST = 8  # drafted tokens a round
TARGET, DRAFT = "llama-3-8b", "llama-3.2-1b"
PROMPT, ANSWER = 512, 192  # tokens


class Scripted:
    """A model that computes everything and then says what the script says: the token at each place, greedily.

    `right`: the share of places at which it does so; at the others it says another token.
    """

    def __init__(self, model: Llama, right: float = 1.0, seed: int = 0) -> None:
        self.model, self.config, self.embed = FusedLlama(model), model.config, model.embed
        numbers = random.Random(seed)
        wrong = [int(numbers.random() >= right) for _ in range(model.config.max_context + 1)]
        self.script = torch.tensor([script(place) + off for place, off in enumerate(wrong)], device=model.embed.device)

    def __call__(self, batch: ForwardBatch, rows: Tensor | None = None) -> Tensor:
        logits = self.model(batch, rows)
        places = batch.positions if rows is None else batch.positions[rows]
        logits.scatter_(1, self.script[places + 1][:, None], 1e4)
        return logits


def script(place: int) -> int:
    """The token that the script has at a place. Any vocabulary of 256 or more has it and the one after it."""
    return place * 97 % 251


def scripted_answer(n_prompt: int, n_tokens: int) -> Answer:
    return Answer(tuple(map(script, range(n_prompt))), tuple(map(script, range(n_prompt, n_prompt + n_tokens))))


def speculative(
    target: Llama,
    clock: Clock,
    draft_shape: ModelConfig = MODELS[DRAFT],
    alphas: Sequence[float] = ALPHAS,
    n_prompt: int = PROMPT,
    n_tokens: int = ANSWER,
    rounds: int = 2,
    save: Save = forget,
) -> Section:
    """Speed-up by α, at the best k for the costs measured here. The draft has the target's vocabulary."""
    section = Section(
        "gpu_speculative",
        f"Speculation: {target.config.name} with a draft of {draft_shape.name}'s shape, acceptance by construction",
        {
            "alpha": "α",
            "k": "k",
            "draft_cost": "a draft, steps",
            "verify_cost": "checking k, steps",
            "tokens_per_pass": "tokens a pass",
            "predicted": "predicted ×",
            "measured": "measured ×",
            "ratio": "measured/predicted",
            "same": "same answer",
        },
    )
    section.notes.append("Predicted: by the formula for the α that was set, from a plain step, a check and a draft.")
    generator = torch.Generator(target.embed.device).manual_seed(1)
    draft = Llama(draft_shape, target.embed.dtype, target.embed.device).randomize(generator)
    answers = [scripted_answer(n_prompt, n_tokens)]
    said = cast(Llama, Scripted(target))
    costs = measure_costs(said, cast(Llama, Scripted(draft)), answers, 4, clock)
    row = max(0.0, (costs.verify_cost - 1) / 4)
    for alpha in alphas:
        k = max(1, best_draft_length(alpha, costs.draft_cost, lambda k: 1 + row * k, MOST))
        found = compare(said, cast(Llama, Scripted(draft, alpha)), answers, k, rounds, clock)
        predicted = found.costs.speedup(alpha)
        ratio = found.measured / predicted
        section.rows.append(
            {
                "alpha": alpha,
                "k": k,
                "draft_cost": found.costs.draft_cost,
                "verify_cost": found.costs.verify_cost,
                "tokens_per_pass": found.acceptance.tokens_per_pass,
                "predicted": predicted,
                "measured": found.measured,
                "ratio": ratio,
                "same": "yes" if found.same else "NO",
            }
        )
        section.targets.append(
            Target(f"α = {alpha}: measured speed-up off the predicted one by", abs(ratio - 1), WITHIN, at_least=False)
        )
        save(section)
    return section
