"""The Numba kernels equal their twins, exactly where the sums are exact, and refuse what would read foreign memory."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from paged_cases import Case, empty_like, expected_attention, paged

from reference_impl import kernels

pytest.importorskip("numba", reason="the CPU kernels need numba")
DTYPES = [torch.float32, torch.bfloat16]


def whole_numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Small integers as float32: every sum of products is exact in any order."""
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(seed)).float()


@pytest.mark.parametrize("weight_dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 33])
@pytest.mark.parametrize(("n_in", "n_out"), [(1, 1), (13, 7), (64, 33), (576, 96), (1100, 40)])
def test_whole_numbers_are_multiplied_exactly(n: int, n_in: int, n_out: int, weight_dtype: torch.dtype) -> None:
    x, weight = whole_numbers(n, n_in), whole_numbers(n_out, n_in, seed=1)
    got = kernels.linear(x, weight.to(weight_dtype), backend="cpu")
    assert torch.equal(got, (x.double() @ weight.double().T).float())


@pytest.mark.parametrize("weight_dtype", DTYPES)
def test_rounding_stays_at_the_level_of_float32(weight_dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn(5, 1536, generator=random), torch.randn(50, 1536, generator=random).to(weight_dtype)
    got = kernels.linear(x, weight, backend="cpu")
    torch.testing.assert_close(got.double(), x.double() @ weight.double().T, rtol=0, atol=2e-4)


def test_bias_and_rows_of_a_larger_tensor_are_read_right() -> None:
    wide, weight, bias = whole_numbers(6, 40), whole_numbers(9, 20, seed=1), whole_numbers(9, seed=2)
    x = wide[::2, 10:30]
    assert not x.is_contiguous()
    got = kernels.linear(x, weight, bias, backend="cpu")
    assert torch.equal(got, (x.double() @ weight.double().T + bias).float())


def test_bfloat16_rows_give_bfloat16_rounded_once() -> None:
    x, weight = whole_numbers(3, 200), whole_numbers(5, 200, seed=1)
    got = kernels.linear(x.bfloat16(), weight.bfloat16(), backend="cpu")
    assert got.dtype is torch.bfloat16
    assert torch.equal(got, (x @ weight.T).bfloat16())


def test_infinities_and_nans_in_the_weights_reach_the_result() -> None:
    weight = torch.tensor([[float("inf")] * 40, [float("nan")] * 40, [1.0] * 40])
    out = kernels.linear(torch.ones(1, 40), weight, backend="cpu")[0]
    assert out[0] == float("inf")
    assert out[1].isnan()
    assert out[2] == 40


def test_one_thread_and_several_give_the_same_bits() -> None:
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn(3, 576, generator=random), torch.randn(500, 576, generator=random)
    before = torch.get_num_threads()
    try:
        results = []
        for n_threads in (1, 2, 4):
            torch.set_num_threads(n_threads)
            results.append(kernels.linear(x, weight, backend="cpu"))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_calls_from_several_python_threads_do_not_disturb_each_other() -> None:
    weights = [whole_numbers(300, 64, seed=i) for i in range(8)]
    x = whole_numbers(1, 64, seed=9)

    def many(weight: torch.Tensor) -> bool:
        expected = (x.double() @ weight.double().T).float()
        return all(torch.equal(kernels.linear(x, weight, backend="cpu"), expected) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(many, weights))


CASES = [
    Case((1,), (1,)),
    Case((200,), (1,), n_heads=9, n_kv_heads=3, head_dim=64, block_size=16),
    Case((5, 17, 33, 70), (1, 4, 1, 3), n_heads=6, n_kv_heads=2, head_dim=20),
    Case((40, 3), (40, 2), n_heads=4, n_kv_heads=4, head_dim=7, block_size=3),
    Case((33,), (5,), n_heads=8, n_kv_heads=1, block_size=1),
    Case((100, 64), (1, 1), block_size=128),  # one block a sequence, as a contiguous cache has
    Case((9, 8, 7, 6, 5, 4, 3, 2), (1,) * 8),
    Case((600, 30, 520, 70), (70, 1, 2, 70), n_heads=6, n_kv_heads=2, block_size=16),  # long and short chunks together
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_attention_equals_torchs_own_on_whole_sequences(case: Case, dtype: torch.dtype) -> None:
    case = Case(**{**vars(case), "dtype": dtype})
    made = paged(case)
    got = kernels.paged_attention(made.q, made.kv, 0, backend="cpu")
    close = {"rtol": 0, "atol": 2e-6} if dtype is torch.float32 else {"rtol": 2**-8, "atol": 1e-6}
    torch.testing.assert_close(got.double(), expected_attention(case, made), **close)


def test_large_scores_do_not_overflow() -> None:
    made = paged(CASES[2])
    got = kernels.paged_attention(made.q * 500, made.kv, 0, backend="cpu")
    expected = kernels.paged_attention(made.q * 500, made.kv, 0, backend="torch")
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)


def test_float32_queries_read_a_bfloat16_cache() -> None:
    case = Case(**{**vars(CASES[2]), "dtype": torch.bfloat16})
    made = paged(case)
    got = kernels.paged_attention(made.q.float(), made.kv, 0, backend="cpu")
    assert got.dtype is torch.float32
    torch.testing.assert_close(got.double(), expected_attention(case, made), rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_store_kv_writes_what_the_cache_was_made_of_and_leaves_the_rest(dtype: torch.dtype) -> None:
    made = paged(Case((5, 17, 30), (1, 1, 1), n_heads=3, n_kv_heads=3, head_dim=7, dtype=dtype))
    kv = empty_like(made.kv)
    kernels.store_kv(made.k, made.v, kv, 0, backend="cpu")
    for got, expected in zip(kv.layers[0], made.kv.layers[0], strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def test_store_kv_rounds_float32_into_a_bfloat16_cache_and_skips_padding() -> None:
    made = paged(Case((1,), (1,), 1, 1, head_dim=1, block_size=2, dtype=torch.bfloat16))
    kv = empty_like(made.kv, slots=torch.tensor([1, -1]))
    new = torch.tensor([1 + 2**-8, 5.0]).view(2, 1, 1)  # half-way between two bfloat16 numbers: to the even one
    kernels.store_kv(new, new, kv, 0, backend="cpu")
    assert kv.layers[0][0].flatten().nan_to_num(7.0).tolist() == [7.0, 1.0, 7.0, 7.0, 7.0, 7.0]


@pytest.mark.parametrize("block", [-1, 99])
def test_a_table_that_points_outside_the_cache_is_refused(block: int) -> None:
    made = paged(Case((9,), (1,)))
    made.kv.block_tables[0, 1] = block
    with pytest.raises(IndexError, match=rf"tables \[\[.*{block}.*\]\] do not fit .* cache of 5 blocks of 4"):
        kernels.paged_attention(made.q, made.kv, 0, backend="cpu")


@pytest.mark.parametrize(("new", "context"), [(1, 3), (2, 13), (2, 1)])
def test_lengths_that_do_not_fit_the_tokens_or_the_table_are_refused(new: int, context: int) -> None:
    made = paged(Case((9,), (2,)))
    made.kv.query_lens[0], made.kv.context_lens[0] = new, context
    with pytest.raises(IndexError, match="do not fit 2 new tokens"):
        kernels.paged_attention(made.q, made.kv, 0, backend="cpu")


@pytest.mark.parametrize("block", [-1, 999])
def test_a_long_chunk_with_a_table_that_points_outside_is_refused(block: int) -> None:
    made = paged(Case((600,), (80,)))
    made.kv.block_tables[0, 1] = block
    with pytest.raises(IndexError, match=rf"{block}.* do not fit 80 new tokens in a cache of 152 blocks of 4"):
        kernels.paged_attention(made.q, made.kv, 0, backend="cpu")


def test_long_chunks_whose_lengths_do_not_add_up_are_refused() -> None:
    made = paged(Case((600,), (80,)))
    made.kv.query_lens[0] = 79
    with pytest.raises(IndexError, match=r"lengths \[79\] of contexts \[600\] .* do not fit 80 new tokens"):
        kernels.paged_attention(made.q, made.kv, 0, backend="cpu")


def test_a_slot_beyond_the_cache_is_refused() -> None:
    made = paged(Case((2,), (1,)))
    with pytest.raises(IndexError, match=r"slots \[0, 12\] do not fit a cache of 3 blocks of 4"):
        kernels.store_kv(made.k, made.v, replace(made.kv, slots=torch.tensor([0, 12])), 0, backend="cpu")


def test_a_kernel_is_compiled_once_and_found_on_disk_by_the_next_process(tmp_path: Path) -> None:
    code = (
        "import torch; from reference_impl.kernels.cpu import backend; from numba.core import event\n"
        "with event.install_recorder('numba:compile') as found: backend.kernel('store', torch.float32)\n"
        "print(len(found.buffer))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = lambda: subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert int(run().stdout) > 0
    assert int(run().stdout) == 0


@pytest.mark.parametrize("weight_dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 576), (40, 13), (2, 3, 64)])
def test_rms_norm_equals_its_definition_in_float64(shape: tuple[int, ...], weight_dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn(shape, generator=random), torch.randn(shape[-1], generator=random).to(weight_dtype)
    expected = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    got = kernels.rms_norm(x, weight, 1e-5, backend="cpu")
    torch.testing.assert_close(got.double(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_rotating_turns_each_pair_as_a_complex_number(n: int) -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, 16, generator=random)[:, 1:4]
    angle = torch.rand(n, 1, 8, generator=random) * 6
    cos, sin = torch.cat((angle.cos(),) * 2, -1), torch.cat((-angle.sin(), angle.sin()), -1)
    turned = torch.complex(x[..., :8], x[..., 8:]) * torch.exp(1j * angle)
    got = kernels.rotate(x, cos, sin, backend="cpu")
    torch.testing.assert_close(got, torch.cat((turned.real, turned.imag), -1), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("n", "width"), [(1, 1), (3, 1536), (20, 7)])
def test_silu_times_up_equals_its_definition_in_float64(n: int, width: int) -> None:
    x = torch.randn(n, 2 * width, generator=torch.Generator().manual_seed(0)) * 10
    gate, up = x[:, :width].double(), x[:, width:].double()
    got = kernels.silu_mul(x, backend="cpu")
    torch.testing.assert_close(got.double(), gate / (1 + torch.exp(-gate)) * up, rtol=1e-6, atol=1e-6)


def test_silu_of_very_negative_very_large_and_missing_numbers() -> None:
    gate = torch.tensor([-1000.0, -100.0, 0.0, 1000.0, float("nan")])
    got = kernels.silu_mul(torch.cat((gate, torch.ones(5)))[None], backend="cpu")[0].tolist()
    assert got[:4] == pytest.approx([0.0, 0.0, 0.0, 1000.0], abs=1e-30)
    assert got[4] != got[4]
