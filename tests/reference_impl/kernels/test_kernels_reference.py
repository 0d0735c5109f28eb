"""The plain PyTorch twins, against numbers worked out by hand and torch's own attention."""

from __future__ import annotations

import math

import pytest
import torch
from paged_cases import Case, expected_attention, paged

from reference_impl import kernels
from reference_impl.kernels import PagedKV


def places(k_cache: torch.Tensor, v_cache: torch.Tensor, slots: list[int]) -> PagedKV:
    """What storing reads: the blocks of one layer, and the slots."""
    return PagedKV([(k_cache, v_cache)], torch.tensor(slots), *[torch.tensor([])] * 3)


def attend_one_head(scores: list[float], values: list[float], table: list[int], block_size: int) -> float:
    """Attention of one query whose scores with the keys are given (head_dim 1, q = 1, k = score)."""
    k_cache = torch.full((max(table) + 1, 1, block_size, 1), float("nan"), dtype=torch.float64)
    v_cache = k_cache.clone()
    for t, (score, value) in enumerate(zip(scores, values, strict=True)):
        k_cache[table[t // block_size], 0, t % block_size] = score
        v_cache[table[t // block_size], 0, t % block_size] = value
    q = torch.ones(1, 1, 1, dtype=torch.float64)
    lens = torch.tensor([1], dtype=torch.int32), torch.tensor([len(scores)], dtype=torch.int32)
    kv = PagedKV([(k_cache, v_cache)], torch.tensor([]), torch.tensor([table]), *lens)
    return kernels.paged_attention(q, kv, 0).item()


def test_a_key_that_scores_log_three_higher_gets_three_quarters_of_the_weight() -> None:
    assert attend_one_head([math.log(3), 0.0], [8.0, 4.0], [0], 2) == pytest.approx(7.0)


def test_a_single_query_sees_all_five_keys() -> None:
    assert attend_one_head([0.0] * 5, [1.0, 2.0, 3.0, 4.0, 10.0], [2, 0, 1], 2) == pytest.approx(4.0)


def test_two_new_tokens_see_the_past_and_the_first_does_not_see_the_second() -> None:
    k_cache, v_cache = torch.zeros(1, 1, 4, 1), torch.tensor([3.0, 6.0, 9.0, float("nan")]).view(1, 1, 4, 1)
    q, lens = torch.ones(2, 1, 1), (torch.tensor([2]), torch.tensor([3]))
    kv = PagedKV([(k_cache, v_cache)], torch.tensor([]), torch.tensor([[0]]), *lens)
    out = kernels.paged_attention(q, kv, 0, backend="torch")
    assert out.flatten().tolist() == [4.5, 6.0]


@pytest.mark.parametrize(
    "case",
    [
        Case((1,), (1,)),
        Case((7, 13, 4), (7, 13, 4), n_heads=6, n_kv_heads=2),
        Case((9, 5, 17), (1, 5, 3), n_heads=9, n_kv_heads=3, block_size=16),
        Case((12, 3), (2, 1), n_kv_heads=4, block_size=1, head_dim=5),
    ],
)
def test_attention_in_float64_equals_torchs_own_on_whole_sequences(case: Case) -> None:
    made = paged(Case(**{**vars(case), "dtype": torch.float64}))
    got = kernels.paged_attention(made.q, made.kv, 0)
    torch.testing.assert_close(got, expected_attention(case, made), rtol=0, atol=1e-12)


def test_store_kv_puts_each_token_into_its_slot_and_nothing_else() -> None:
    k_cache, v_cache = torch.zeros(2, 1, 2, 1), torch.zeros(2, 1, 2, 1)
    k, v = torch.tensor([1.0, 2.0]).view(2, 1, 1), torch.tensor([3.0, 4.0]).view(2, 1, 1)
    kernels.store_kv(k, v, places(k_cache, v_cache, [3, 0]), 0, backend="torch")
    assert k_cache.flatten().tolist() == [2.0, 0.0, 0.0, 1.0]
    assert v_cache.flatten().tolist() == [4.0, 0.0, 0.0, 3.0]


def test_a_negative_slot_is_padding() -> None:
    k_cache, v_cache = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 1)
    new = torch.ones(2, 1, 1)
    kernels.store_kv(new, new, places(k_cache, v_cache, [-1, 1]), 0, backend="torch")
    assert k_cache.flatten().tolist() == [0.0, 1.0]


def test_linear_adds_the_bias_to_every_row() -> None:
    x, weight = torch.tensor([[1.0, 2.0], [0.0, 1.0]]), torch.tensor([[3.0, 4.0]])
    assert kernels.linear(x, weight, torch.tensor([0.5]), backend="torch").tolist() == [[11.5], [4.5]]


def test_float32_rows_with_bfloat16_weights_stay_in_float32() -> None:
    x = torch.tensor([[1.0, 2**-20]])
    out = kernels.linear(x, torch.ones(1, 2, dtype=torch.bfloat16), backend="torch")
    assert out.item() == 1 + 2**-20
