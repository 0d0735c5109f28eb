"""Tensor parallelism: logits over 1, 2 and 4 ranks equal those of the whole model; a share in bytes; the launcher."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import replace
from pathlib import Path

import parallel_cases as cases
import pytest
import torch

from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.bounds.hardware import GPUS
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama
from reference_impl.parallel.ranks import RankError, run_ranks, same_seed
from reference_impl.parallel.sharding import rank_config, rank_slices
from reference_impl.parallel.tensor_parallel import slices

LLAMA_70B = MODELS["llama-3-70b"]


@pytest.fixture(scope="module")
def runs() -> list[dict[tuple[str, int], cases.Run]]:
    """One start of four ranks for all cases; of each rank what it saw."""
    return run_ranks(4, cases.all_runs, timeout=120)


def expected_logits(config: ModelConfig) -> torch.Tensor:
    """The whole model on whole sequences, without a cache: for every token of every pass, in the passes' order."""
    model, passes = cases.whole_model(config), cases.passes(config)
    sequences = [[token for one in passes for token in one[seq]] for seq in range(3)]
    with torch.no_grad():
        by_sequence = model(Recompute(*sequences)).split([len(tokens) for tokens in sequences])
    rows = []
    for seq in range(3):
        rows.append(by_sequence[seq].split([len(one[seq]) for one in passes]))
    return torch.cat([rows[seq][step] for step in range(len(passes)) for seq in range(3)])


@pytest.mark.parametrize("name", cases.VARIANTS)
def test_one_two_and_four_ranks_give_the_logits_of_the_whole_model(
    runs: list[dict[tuple[str, int], cases.Run]], name: str
) -> None:
    expected = expected_logits(cases.VARIANTS[name])
    assert expected.abs().max() > 1  # the comparison below is about numbers of this size
    for ranks in cases.GROUPS:
        for rank in ranks:
            found = runs[rank][name, len(ranks)].logits
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_all_ranks_get_the_same_logits_to_the_last_bit(runs: list[dict[tuple[str, int], cases.Run]]) -> None:
    for name in cases.VARIANTS:
        for rank in (1, 2, 3):
            assert torch.equal(runs[rank][name, 4].logits, runs[0][name, 4].logits), (name, rank)


@pytest.mark.parametrize(
    ("name", "on_two", "on_four"),
    [("one KV head, tied", 1, 1), ("two KV heads, untied", 1, 1), ("four KV heads", 2, 1)],
)
def test_a_ranks_cache_holds_its_own_kv_heads_or_a_copy_where_there_are_too_few(
    runs: list[dict[tuple[str, int], cases.Run]], name: str, on_two: int, on_four: int
) -> None:
    assert (runs[0][name, 2].kv_heads, runs[3][name, 4].kv_heads) == (on_two, on_four)


def test_loading_a_stream_never_holds_more_than_the_tensor_at_hand_and_the_one_before(
    runs: list[dict[tuple[str, int], cases.Run]],
) -> None:
    assert {run.most_alive for seen in runs for run in seen.values()} <= {1, 2}


def test_a_rank_holds_as_many_parameters_as_its_config_says(runs: list[dict[tuple[str, int], cases.Run]]) -> None:
    for name, config in cases.VARIANTS.items():
        for n_ranks in (1, 2, 4):
            assert runs[0][name, n_ranks].n_params == rank_config(config, n_ranks).n_params, (name, n_ranks)


def test_fused_matrices_are_split_by_their_parts() -> None:
    config = ModelConfig("tiny", 1, 4, 4, 2, 2, 6, 10)
    whole = Llama(config)
    for first, view in enumerate(whole.views().values()):  # row r of the n-th tensor holds 100 n + r
        view.copy_(100 * first + torch.arange(len(view)).reshape(-1, *[1] * (view.dim() - 1)).expand_as(view))
    part = Llama(rank_config(config, 2))
    weights.fill(part, slices(whole.views().items(), config, rank=1, n_ranks=2), Path("whole"))
    numbers = {name: 100 * i for i, name in enumerate(whole.views())}
    q, k, v = (numbers[f"model.layers.0.self_attn.{letter}_proj.weight"] for letter in "qkv")
    gate, up = (numbers[f"model.layers.0.mlp.{name}_proj.weight"] for name in ("gate", "up"))
    layer = part.layers[0]
    # Rank 1 of 2 has query heads 2 and 3 (rows 4 to 7), KV head 1 (rows 2 and 3), and the upper half of the width.
    expected = [q + 4, q + 5, q + 6, q + 7, k + 2, k + 3, v + 2, v + 3]
    assert layer.wqkv.weight[:, 0].tolist() == expected
    assert layer.w_gate_up.weight[:, 0].tolist() == [gate + 3, gate + 4, gate + 5, up + 3, up + 4, up + 5]


def test_ranks_that_share_a_kv_head_have_that_of_their_query_heads() -> None:
    config = replace(cases.PLAIN, n_kv_heads=2)  # 8 query heads: 0 to 3 use KV head 0, 4 to 7 use KV head 1
    held = [rank_slices(config, rank, 4) for rank in range(4)]
    assert [(list(part.heads), list(part.kv_heads)) for part in held] == [
        ([0, 1], [0]), ([2, 3], [0]), ([4, 5], [1]), ([6, 7], [1])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "n_ranks", "message"),
    [
        (MODELS["smollm2-135m"], 2, "smollm2-135m: n_heads 9 does not divide over 2 ranks"),
        (replace(cases.PLAIN, d_ff=82), 4, "tiny: d_ff 82 does not divide over 4 ranks"),
        (
            replace(cases.PLAIN, n_heads=12, n_kv_heads=4, d_ff=96),
            6,
            "tiny: n_kv_heads 4 does not divide over 6 ranks, nor they over it",
        ),
        (cases.PLAIN, 0, "a model needs at least 1 rank, got 0"),
    ],
)
def test_a_dimension_that_does_not_divide_is_named_with_the_ranks(
    config: ModelConfig, n_ranks: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rank_config(config, n_ranks)


def test_a_rank_outside_the_group_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 2 is not one of 2 ranks counted from 0"):
        rank_slices(cases.PLAIN, 2, 2)


def test_a_tensor_that_was_split_already_is_refused() -> None:
    half = {"model.layers.0.mlp.down_proj.weight": torch.zeros(48, 40)}
    with pytest.raises(WeightsError, match=r"mlp.down_proj.weight: expected 80 along dimension 1, found \[48, 40\]"):
        list(slices(half.items(), cases.PLAIN, 0, 2))


# --- The 70B question: what a rank holds ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_ranks", "milliseconds"), [(1, 42.1), (2, 21.1)])
def test_70b_in_bf16_reads_its_weights_in_42_ms_on_one_h100_and_21_ms_on_two(n_ranks: int, milliseconds: float) -> None:
    bandwidth = GPUS["h100-sxm"].bandwidth
    held = 2 * rank_config(LLAMA_70B, n_ranks).n_params
    alone = arithmetic.step_seconds(held, 0, bandwidth, 1)
    paper = arithmetic.step_seconds(arithmetic.weight_bytes(LLAMA_70B.n_params, 16), 0, bandwidth, n_ranks)
    assert round(alone * 1e3, 1) == milliseconds
    assert alone == pytest.approx(paper, rel=1e-4)


def test_70b_weighs_141_gb_and_two_ranks_hold_that_and_one_more_copy_of_the_norms() -> None:
    whole = arithmetic.weight_bytes(LLAMA_70B.n_params, 16)
    assert round(whole / 1e9, 1) == 141.1
    two_halves = 2 * 2 * rank_config(LLAMA_70B, 2).n_params
    assert two_halves - whole == 161 * 8192 * 2  # two norms in each of 80 layers, and a last


def test_the_shape_of_a_rank_counts_the_weights_that_it_really_holds() -> None:
    for n_ranks in (2, 8):
        part = rank_config(LLAMA_70B, n_ranks)
        model = Llama(part, torch.bfloat16, "meta")  # shapes only, no memory
        assert part.n_params == sum(parameter.numel() for parameter in model.parameters())


def test_the_kv_cache_divides_only_as_far_as_there_are_kv_heads() -> None:
    kept = [rank_config(LLAMA_70B, n).kv_bytes_per_token() for n in (1, 2, 8, 16)]
    assert kept == [327_680, 163_840, 40_960, 40_960]


# --- The launcher -----------------------------------------------------------------------------------------------------


def test_results_come_back_in_the_order_of_the_ranks() -> None:
    assert run_ranks(3, cases.describe, "hello", timeout=60) == [("hello", 0, 3), ("hello", 1, 3), ("hello", 2, 3)]


def test_a_rank_that_raises_is_named_though_the_others_wait_for_it() -> None:
    with pytest.raises(RankError, match="rank 1 of 2 failed: LookupError: nothing here") as caught:
        run_ranks(2, cases.fail_on, 1, timeout=60)
    assert isinstance(caught.value.__cause__, LookupError)
    assert "fail_on" in caught.value.__notes__[0]  # the traceback of the rank
    assert multiprocessing.active_children() == []


def test_a_rank_that_dies_is_named_with_its_exit_status() -> None:
    with pytest.raises(RankError, match=r"rank 0 of 2 died without a word \(exit status 7\)"):
        run_ranks(2, cases.die_on, 0, timeout=60)


def test_a_rank_that_never_ends_is_named_and_ended() -> None:
    start = time.monotonic()
    with pytest.raises(RankError, match="no result from rank 1 of 2 within 3 seconds"):
        # Rank 0 has sent its result and waits for the other at the end.
        run_ranks(2, cases.sleep_on, 1, timeout=3)
    assert time.monotonic() - start < 30
    assert multiprocessing.active_children() == []


def test_without_a_seed_ranks_agree_on_a_new_one() -> None:
    (first, also_first), (second, also_second) = (run_ranks(2, same_seed, None, timeout=60) for _ in range(2))
    assert (first, second) == (also_first, also_second)
    assert first != second
    assert run_ranks(1, same_seed, 17, timeout=60) == [17]


def test_no_rank_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="n_ranks must be at least 1, got 0"):
        run_ranks(0, cases.describe, "hello")
