"""Kernels that do several steps at once equal their twins, done one after the other; replayed launches do it again."""

from __future__ import annotations

import pytest
import torch
from fused_cases import Rows, norm_linear_errors, rotated_attention_errors
from paged_cases import Case

from reference_impl import kernels

pytest.importorskip("numba", reason="the CPU kernels need numba")
from reference_impl.kernels.cpu.recording import Recording

BF16 = torch.bfloat16


@pytest.mark.parametrize("case", [Rows(1, 576, 96), Rows(4, 64, 34), Rows(9, 13, 6), Rows(33, 40, 300), Rows(2, 1, 2)])
def test_adding_normalising_and_multiplying_at_once_equals_the_definition_in_float64(case: Rows) -> None:
    errors = norm_linear_errors(case, "cpu", "cpu")
    assert errors["sums"] < 1e-6
    assert errors["product"] < 2e-5
    assert errors["gated"] < 2e-5


@pytest.mark.parametrize("width", [1, 2, 13, 64, 576, 1100])
@pytest.mark.parametrize("n", [1, 4, 5, 33])
def test_pairs_of_bfloat16_weights_are_multiplied_exactly_where_sums_are_exact(n: int, width: int) -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.randint(-8, 9, (n, width), generator=random).float()
    weight = torch.randint(-8, 9, (23, width), generator=random).bfloat16()
    assert torch.equal(kernels.linear(x, weight, backend="cpu"), x @ weight.float().T)


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
@pytest.mark.parametrize(("n", "n_heads", "n_kv_heads", "head_dim"), [(1, 4, 2, 64), (17, 3, 1, 20), (5, 2, 2, 7)])
def test_queries_and_keys_are_normalised_and_values_are_not(
    n: int, n_heads: int, n_kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    random = torch.Generator().manual_seed(0)
    heads = torch.randn(n, n_heads + 2 * n_kv_heads, head_dim, generator=random)
    norms = [torch.randn(head_dim, generator=random).to(dtype) for _ in range(2)]
    got = kernels.norm_heads(heads, *norms, n_heads, 1e-5, backend="cpu")
    for h in range(heads.shape[1]):
        row = heads[:, h].double()
        norm = norms[0] if h < n_heads else norms[1] if h < n_heads + n_kv_heads else None
        expected = row if norm is None else row / (row.square().mean(1, keepdim=True) + 1e-5).sqrt() * norm.double()
        torch.testing.assert_close(got[:, h].double(), expected, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="norm_heads"):
        kernels.norm_heads(heads, norms[0][1:], norms[1], n_heads, 1e-5)


def test_norm_weights_in_bfloat16_and_no_delta_are_understood() -> None:
    x, norm = torch.tensor([[3.0, 4.0]]), torch.tensor([2.0, 0.5], dtype=BF16)
    sums, out = kernels.norm_linear(x, None, norm, 0.0, torch.eye(2, dtype=BF16), backend="cpu")
    assert sums is x
    assert out[0].tolist() == pytest.approx([6 / 12.5**0.5, 2 / 12.5**0.5])


CASES = [
    Case((1,), (1,)),
    Case((200,), (1,), n_heads=9, n_kv_heads=3, head_dim=64, block_size=16),
    Case((5, 17, 33, 70), (1, 4, 1, 3), n_heads=6, n_kv_heads=2, head_dim=20),
    Case((40, 13), (30, 12)),  # a long chunk: done in parts
]


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
@pytest.mark.parametrize("case", CASES)
def test_rotating_storing_and_attending_at_once_equals_one_after_the_other(case: Case, dtype: torch.dtype) -> None:
    case = Case(**{**vars(case), "dtype": dtype})
    errors = rotated_attention_errors(case, "cpu", "cpu" if dtype is torch.float32 else None)
    limit = 1e-5 if dtype is torch.float32 else 3e-2
    assert errors["attention"] < limit
    assert errors["cache"] < limit


def test_a_slot_or_block_outside_the_cache_is_refused() -> None:
    heads, one = torch.ones(1, 4, 4), torch.ones(1, 1, 4)
    keys, values = torch.zeros(2, 2, 1, 2, 4)
    int32 = lambda *numbers: torch.tensor(numbers, dtype=torch.int32)

    def of(slot: int, block: int, context: int) -> torch.Tensor:
        kv = kernels.PagedKV([(keys, values)], torch.tensor([slot]), int32(block)[None], int32(1), int32(context))
        return kernels.rotated_attention(heads, 2, one, one, kv, 0, backend="cpu")

    assert of(0, 0, 1).shape == (1, 2, 4)
    with pytest.raises(IndexError, match=r"slots \[4\] do not fit a cache of 2 blocks of 2"):
        of(4, 0, 1)
    with pytest.raises(IndexError, match=r"tables \[\[2\]\] do not fit"):
        of(0, 2, 1)
    with pytest.raises(IndexError, match=r"contexts \[3\]"):
        of(0, 0, 3)


@pytest.mark.parametrize("dtype", [torch.float32, BF16, torch.float64])
def test_looking_up_takes_rows_and_widens_bfloat16(dtype: torch.dtype) -> None:
    table = torch.arange(12.0).view(4, 3).to(dtype)
    got = kernels.look_up(table, torch.tensor([3, 0, 3]))
    assert got.dtype is (torch.float64 if dtype is torch.float64 else torch.float32)
    assert got.tolist() == [[9.0, 10.0, 11.0], [0.0, 1.0, 2.0], [9.0, 10.0, 11.0]]


@pytest.mark.parametrize("index", [-1, 4])
def test_looking_up_outside_the_table_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=rf"index \[{index}\] does not fit a table of 4 rows"):
        kernels.look_up(torch.zeros(4, 3), torch.tensor([index]), backend="cpu")


def test_recorded_launches_follow_what_lies_in_their_memory() -> None:
    x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    with Recording() as recording:
        out = kernels.linear(kernels.linear(x, weight), weight)
    assert out.tolist() == [[2.0, 4.0]]
    x.copy_(torch.tensor([[5.0, -3.0]]))
    recording.replay()
    assert out.tolist() == [[10.0, -6.0]]
    kernels.linear(x, weight)  # outside: not recorded
    assert len(recording) == 2
