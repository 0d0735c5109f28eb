"""Sampling: what temperature, top-k and top-p leave of a distribution, and that a given number picks a given token."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from reference_impl.decoding.sampling import SamplingParams, next_token, processed_probs, sample


def logits_of(*probs: float) -> Tensor:
    """Logits whose softmax is `probs`."""
    return torch.tensor(probs, dtype=torch.float64).log()


def left(probs: Tensor) -> set[int]:
    return set(probs.nonzero().flatten().tolist())


def assert_probs(actual: Tensor, *expected: float) -> None:
    torch.testing.assert_close(actual.double(), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (0.0, (0, 0, 0, 1)),
        (0.4, (0, 0, 0, 1)),
        (0.41, (0, 0, 3 / 7, 4 / 7)),
        (0.6, (0, 0, 3 / 7, 4 / 7)),
        (0.7, (0, 0, 3 / 7, 4 / 7)),  # .4 and .3 reach .7, whatever their sum is in floating point
        (0.71, (0, 2 / 9, 3 / 9, 4 / 9)),
        (1.0, (0.1, 0.2, 0.3, 0.4)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_top_p_keeps_the_smallest_set_that_reaches_p(
    top_p: float, expected: tuple[float, ...], dtype: torch.dtype
) -> None:
    probs = processed_probs(logits_of(0.1, 0.2, 0.3, 0.4).to(dtype), SamplingParams(1.0, top_p=top_p))
    assert_probs(probs, *expected)


def test_temperature_zero_is_greedy_whatever_top_p_says() -> None:
    assert_probs(processed_probs(logits_of(0.1, 0.2, 0.3, 0.4), SamplingParams(0.0, top_p=0.0)), 0, 0, 0, 1)


def test_greedy_takes_the_lower_id_of_equals() -> None:
    assert_probs(processed_probs(torch.tensor([1.0, 5.0, 5.0]), SamplingParams()), 0, 1, 0)


def test_temperature_two_takes_the_square_root_of_the_odds() -> None:
    """.64 to .16 is 4 to 1; at temperature 2 it is 2 to 1."""
    probs = processed_probs(logits_of(0.64, 0.16, 0.2), SamplingParams(2.0))
    assert (probs[0] / probs[1]).item() == pytest.approx(2.0)


def test_temperature_comes_before_top_p() -> None:
    """At temperature 1/2 the odds 4:3:2:1 become 16:9:4:1, and .533 for the first token reaches .5 by itself."""
    logits = logits_of(0.4, 0.3, 0.2, 0.1)
    assert left(processed_probs(logits, SamplingParams(1.0, top_p=0.5))) == {0, 1}
    assert left(processed_probs(logits, SamplingParams(0.5, top_p=0.5))) == {0}


def test_top_p_counts_what_top_k_left() -> None:
    """Of .4, .3, .2, .1 top-k 2 leaves 4/7 and 3/7; the first is .571 and reaches .55."""
    logits = logits_of(0.4, 0.3, 0.2, 0.1)
    assert left(processed_probs(logits, SamplingParams(1.0, top_k=2, top_p=0.55))) == {0}
    assert_probs(processed_probs(logits, SamplingParams(1.0, top_k=2)), 4 / 7, 3 / 7, 0, 0)


def test_top_k_beyond_the_vocabulary_keeps_everything() -> None:
    assert_probs(processed_probs(logits_of(0.75, 0.25), SamplingParams(1.0, top_k=10)), 0.75, 0.25)


def test_top_k_keeps_exactly_k_of_equals() -> None:
    assert_probs(processed_probs(torch.zeros(4), SamplingParams(1.0, top_k=2)), 0.5, 0.5, 0, 0)


def test_a_tiny_temperature_does_not_overflow() -> None:
    assert_probs(processed_probs(torch.tensor([1e4, -1e4, 9.99e3]), SamplingParams(1e-300)), 1, 0, 0)


def test_forbidden_tokens_stay_forbidden() -> None:
    logits = torch.tensor([-math.inf, 0.0, -math.inf, 0.0])
    assert_probs(processed_probs(logits, SamplingParams(1.0, top_k=3)), 0, 0.5, 0, 0.5)


@pytest.mark.parametrize("bad", [[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]])
def test_logits_without_a_distribution_are_refused(bad: list[float]) -> None:
    for params in (SamplingParams(), SamplingParams(1.0)):
        with pytest.raises(ValueError, match="logits hold NaN or inf"):
            processed_probs(torch.tensor(bad), params)


def test_rows_are_treated_each_by_itself() -> None:
    rows = torch.stack([logits_of(0.1, 0.2, 0.3, 0.4), logits_of(0.7, 0.1, 0.1, 0.1)])
    probs = processed_probs(rows, SamplingParams(1.0, top_p=0.6))
    assert_probs(probs[0], 0, 0, 3 / 7, 4 / 7)
    assert_probs(probs[1], 1, 0, 0, 0)


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=12),
    st.floats(0.01, 10),
    st.integers(0, 13),
    st.floats(0, 1),
)
def test_the_likeliest_token_stays_and_all_sums_to_one(
    values: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    logits = torch.tensor(values)
    probs = processed_probs(logits, SamplingParams(temperature, top_k, top_p))
    assert probs.sum().item() == pytest.approx(1.0, abs=1e-5)
    assert probs[logits.argmax()] == probs.max() > 0
    assert len(left(probs)) <= (top_k or len(values))


@pytest.mark.parametrize(
    ("u", "token"), [(0.0, 1), (0.19, 1), (0.2, 2), (0.49, 2), (0.5, 4), (0.999, 4), (math.nextafter(1, 0), 4)]
)
def test_a_number_picks_by_the_cumulative_sum(u: float, token: int) -> None:
    """[0, .2, .3, 0, .5]: tokens 1, 2 and 4 own [0, .2), [.2, .5) and [.5, 1); the others own nothing."""
    assert sample(torch.tensor([0, 0.2, 0.3, 0, 0.5], dtype=torch.float64), u).item() == token


def test_a_batch_takes_one_number_a_row() -> None:
    probs = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    assert sample(probs, torch.tensor([0.7, 0.0])).tolist() == [1, 2]


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30).filter(any), st.floats(0, 1, exclude_max=True))
def test_a_token_of_probability_zero_is_never_drawn(weights: list[float], u: float) -> None:
    probs = torch.tensor(weights)
    assert probs[sample(probs, u)] > 0


def test_evenly_spread_numbers_give_the_distribution() -> None:
    probs = processed_probs(logits_of(0.1, 0.2, 0.3, 0.4), SamplingParams(1.0))
    u = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    assert torch.bincount(sample(probs.expand(1000, 4), u)).tolist() == [100, 200, 300, 400]


@pytest.mark.parametrize("u", [-0.1, 1.0, math.nan])
def test_a_number_outside_the_unit_interval_is_refused(u: float) -> None:
    with pytest.raises(ValueError, match=r"u must lie in \[0, 1\)"):
        sample(torch.tensor([0.5, 0.5]), u)


@pytest.mark.parametrize("probs", [[0.0, 0.0], [math.nan, 1.0]])
def test_probabilities_that_are_none_are_refused(probs: list[float]) -> None:
    with pytest.raises(ValueError, match="finite and not all zero"):
        sample(torch.tensor(probs), 0.5)


def test_a_seed_makes_the_draws_repeatable_and_seeds_differ() -> None:
    logits = torch.zeros(1000)

    def draws(seed: int | None) -> list[int]:
        params = SamplingParams(1.0, seed=seed)
        numbers = params.generator()
        return [next_token(logits, params, numbers) for _ in range(8)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert draws(None) != draws(None)  # 8 of 1,000 tokens alike by chance: 1 in 10^24


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", "hot"),
        ("top_p", 1.01),
        ("top_p", -1e-9),
        ("top_p", math.nan),
        ("top_p", None),
        ("top_k", -1),
        ("top_k", 2.0),
        ("top_k", True),
        ("seed", 1.5),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(setting: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{setting} must be .*got {value!r}$"):
        SamplingParams(**{setting: value})


@pytest.mark.parametrize("broken", [[1.0, math.nan, 3.0], [1.0, math.inf, 3.0], [-math.inf] * 3])
def test_greedy_makes_no_token_of_what_is_not_finite(broken: list[float]) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        next_token(torch.tensor(broken), SamplingParams(), random.Random(0))
    assert next_token(torch.tensor([-math.inf, 2.0]), SamplingParams(), random.Random(0)) == 1
