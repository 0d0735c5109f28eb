"""What a machine can take: a KV cache that fits into memory, and passes that take no longer than they may."""

from __future__ import annotations

import pytest
import torch
from serving_oracle import TINY, tiny_model

from reference_impl.engine import capacity
from reference_impl.engine.capacity import PassCost, free_memory, measure_passes, require_memory
from reference_impl.engine.config import EngineConfig

CPU = torch.device("cpu")


def test_the_cost_of_a_pass_is_a_line_through_two_measurements() -> None:
    """16 tokens take 42 ms and 128 take 266 ms: 10 ms, and 2 ms for each token."""
    cost = PassCost.between(0.042, 0.266)
    assert cost.fixed == pytest.approx(0.010)
    assert cost.per_token == pytest.approx(0.002)


def test_a_pass_holds_what_the_gap_allows_and_never_fewer_than_it_must() -> None:
    cost = PassCost(fixed=0.010, per_token=0.002)
    assert cost.tokens_within(0.2101, 16, 512) == 100
    assert cost.tokens_within(0.001, 16, 512) == 16
    assert cost.tokens_within(10.0, 16, 512) == 512


def test_two_passes_that_take_the_same_time_still_give_a_finite_budget() -> None:
    assert PassCost.between(0.02, 0.02).tokens_within(0.2, 16, 512) == 512


class PassClock:
    """Says 0.1 s at the beginning of every pass and at its end as much later as it has tokens, in milliseconds."""

    def __init__(self) -> None:
        self.now, self.n_tokens = 0.0, 0

    def __call__(self) -> float:
        self.now, self.n_tokens = self.now + self.n_tokens / 1000, 0
        return self.now


def test_passes_are_measured_behind_other_tokens_of_their_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, model, lengths = PassClock(), tiny_model(), []
    embedded = model.embedded

    def counting(tokens: torch.Tensor) -> torch.Tensor:
        clock.n_tokens = len(tokens)
        lengths.append(len(tokens))
        return embedded(tokens)

    monkeypatch.setattr(model, "embedded", counting)
    cost = measure_passes(model, clock)
    assert lengths == [128] * 3 + [16, 128] * 3
    assert cost.per_token == pytest.approx(0.001)
    assert cost.fixed == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        (
            {"n_blocks": 10**12},
            "of 1,000,000,000,000 blocks of 16 tokens takes 2,048,000.0 GB of cpu memory",
        ),
        ({"block_size": 10**12}, "a KV cache of 1,024 blocks of 1,000,000,000,000 tokens takes"),
        (
            {"paged": False, "max_running": 10**12, "token_budget": 10**12},
            "1,000,000,000,000 slots of 640 tokens takes",
        ),
        (
            {"preemption": "swap", "host_blocks": 10**12},
            "a KV cache of 1,000,000,000,000 blocks takes 2,048,000.0 GB of cpu memory",
        ),
    ],
)
def test_a_cache_that_no_memory_holds_is_refused_with_both_sizes(switches: dict[str, int], message: str) -> None:
    """The toy's token takes 2 layers x K and V x 2 KV heads x 4 numbers x 4 bytes: 128 bytes."""
    with pytest.raises(ValueError, match=rf"{message}.* and [\d,.]+ GB are free"):
        require_memory(EngineConfig(**switches), TINY, torch.float32, CPU)  # type: ignore[arg-type]


def test_a_cache_that_fits_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    config = EngineConfig(n_blocks=100)
    monkeypatch.setattr(capacity, "free_memory", lambda device: 100 * 16 * 128)
    require_memory(config, TINY, torch.float32, CPU)
    monkeypatch.setattr(capacity, "free_memory", lambda device: 100 * 16 * 128 - 1)
    with pytest.raises(ValueError, match="are free"):
        require_memory(config, TINY, torch.float32, CPU)
    monkeypatch.setattr(capacity, "free_memory", lambda device: None)
    require_memory(config, TINY, torch.float32, CPU)


def test_this_machine_says_how_much_memory_is_free() -> None:
    free = free_memory(CPU)
    assert free is not None
    assert free > 2**20
