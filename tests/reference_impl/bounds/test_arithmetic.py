"""Every figure of the course that is arithmetic, with the digits that its pages print."""

import dataclasses
import math
import subprocess
import sys

import pytest

from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

H100 = GPUS["h100-sxm"]
ONE_TERABYTE = GPUS["generic-1tb"].bandwidth
LLAMA_8B = MODELS["llama-3-8b"]
LLAMA_70B = MODELS["llama-3-70b"]
ON_H100 = Deployment(LLAMA_8B, H100)


def digits(value, unit, places):
    """A quantity as a page prints it."""
    return f"{value / unit:,.{places}f}"


# Prefill
def test_prefill_of_2000_tokens_at_half_of_the_peak():
    assert digits(arithmetic.time_to_first_token(8_030_261_248, 2000, 989.5e12, 0.5), 1e-3, 1) == "64.9"
    assert arithmetic.prefill_flops(8_030_261_248, 2000) == 32_121_044_992_000


def test_causal_attention_adds_about_3_3_percent_at_2000_tokens():
    with_attention, without = ON_H100.prefill_seconds(2000), ON_H100.prefill_seconds(2000, attention=False)
    assert with_attention / without == pytest.approx(1.033, abs=5e-4)
    assert digits(without, 1e-3, 1) == "64.9"
    assert digits(with_attention, 1e-3, 1) == "67.0"


def test_attention_flops_count_the_visible_pairs_only():
    # 3 tokens: 1 + 2 + 3 pairs, each 2 FLOPs per dimension for the score and 2 for the weighted sum
    assert arithmetic.attention_flops(n_layers=2, n_heads=3, head_dim=5, n_tokens=3) == 6 * 4 * 2 * 3 * 5


# Decode
def test_one_sequence_decodes_at_most_208_6_tokens_per_second():
    seconds, rate = arithmetic.decode_step(1, 0, 2 * 8_030_261_248, 131_072, 3.35e12)
    assert (digits(seconds, 1e-3, 3), digits(rate, 1, 1)) == ("4.794", "208.6")
    assert arithmetic.decode_tokens_per_second(2 * 8_030_261_248, 3.35e12) == pytest.approx(rate)


def test_rounding_the_parameters_to_8e9_gives_209_4_instead():
    assert digits(arithmetic.decode_tokens_per_second(16e9, 3.35e12), 1, 1) == "209.4"


@pytest.mark.parametrize(("bits", "rate"), [(8, "417"), (4, "834")])
def test_fewer_bits_per_weight_speed_decode_up_in_proportion(bits, rate):
    weight_bytes = arithmetic.weight_bytes(8_030_261_248, bits)
    assert digits(arithmetic.decode_tokens_per_second(weight_bytes, 3.35e12), 1, 0) == rate


def test_leaving_the_input_table_out_gives_223_2_tokens_per_second():
    step = ON_H100.step(batch=1, context=0, input_embedding=False)
    assert step.seconds == pytest.approx(4.4805e-3, abs=1e-7)  # 15,009,849,344 bytes
    assert digits(step.tokens_per_second, 1, 1) == "223.2"


def test_a_tied_table_is_read_as_the_output_head_whatever_is_asked():
    tied = Deployment(MODELS["llama-3.2-1b"], H100)
    assert tied.step(1, 0, input_embedding=False) == tied.step(1, 0)


@pytest.mark.parametrize(
    ("batch", "milliseconds", "rate"),
    [(1, "4.874", "205.2"), (8, "5.435", "1,471.9"), (32, "7.358", "4,348.8"), (64, "9.923", "6,450.0")],
)
def test_the_batch_table_at_2048_tokens(batch, milliseconds, rate):
    (row,) = arithmetic.batch_table([batch], 2048, 2 * 8_030_261_248, 131_072, 3.35e12)
    assert (row.batch, digits(row.seconds, 1e-3, 3), digits(row.tokens_per_second, 1, 1)) == (batch, milliseconds, rate)
    step = ON_H100.step(batch, 2048)
    assert (step.seconds, step.limit) == (pytest.approx(row.seconds), "bandwidth")


@pytest.mark.parametrize(
    ("batch", "kv_heads", "gigabytes", "milliseconds", "rate"),
    [
        (1, 40, "26.870", "8.021", "124.68"),
        (64, 40, "79.718", "23.796", "2,689.48"),
        (256, 40, "240.779", "71.874", "3,561.77"),
        (64, 8, "33.413", "9.974", "6,416.69"),
        (256, 8, "65.625", "19.590", "13,068.16"),
    ],
)
def test_the_table_of_cs336_for_llama_2_13b_at_1024_tokens(batch, kv_heads, gigabytes, milliseconds, rate):
    config = dataclasses.replace(MODELS["llama-2-13b"], n_kv_heads=kv_heads)
    weight_bytes = arithmetic.weight_bytes(config.n_params_without_norms, 16)
    (row,) = arithmetic.batch_table([batch], 1024, weight_bytes, config.kv_bytes_per_token(), H100.bandwidth)
    assert digits(row.bytes_read, 1e9, 3) == gigabytes
    assert (digits(row.seconds, 1e-3, 3), digits(row.tokens_per_second, 1, 2)) == (milliseconds, rate)


def test_the_lesson_s_round_numbers_on_a_card_with_one_terabyte_per_second():
    cases = [(8e9, 16), (8e9, 4), (70e9, 16)]
    rates = [arithmetic.decode_tokens_per_second(arithmetic.weight_bytes(n, bits), ONE_TERABYTE) for n, bits in cases]
    assert [f"{rate:.1f}" for rate in rates] == ["62.5", "250.0", "7.1"]
    assert [f"{rate:.0f}" for rate in rates] == ["62", "250", "7"]  # .0f rounds 62.5 half to even


def test_the_lesson_s_batches_share_one_read_of_the_weights():
    rates = [arithmetic.decode_step(batch, 0, 16e9, 131_072, ONE_TERABYTE)[1] for batch in (1, 8, 32)]
    assert [f"{rate:.0f}" for rate in rates] == ["62", "500", "2000"]


# Memory and sizing
def test_59_sequences_of_8192_tokens_fit_in_64_gb():
    assert digits(64e9, 8192 * 131_072, 1) == "59.6"
    assert arithmetic.max_sequences(64e9, 0, 131_072, 8192) == 59
    assert ON_H100.max_sequences(8192) == 59


def test_counting_gib_instead_of_gb_would_move_the_answer():
    assert arithmetic.max_sequences(64 * 2**30, 0, 131_072, 8192) == 64


def test_none_fits_where_the_rest_of_the_memory_is_too_small():
    assert arithmetic.max_sequences(17e9, 16e9, 131_072, 8192) == 0
    assert arithmetic.max_sequences(16e9, 16e9, 131_072, 8192) == 0


def test_sequences_that_fill_the_memory_to_the_last_byte_fit():
    assert arithmetic.max_sequences(1000, 400, 10, 20) == 3
    assert arithmetic.max_sequences(999, 400, 10, 20) == 2


def test_weights_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match=r"the weights \(141,107,412,992 bytes\) do not fit in 80,000,000,000 bytes"):
        arithmetic.max_sequences(80e9, 2 * 70_553_706_496, 327_680, 2048)
    assert Deployment(LLAMA_70B, H100).max_sequences(2048) == 0


def test_an_8b_request_takes_128_kib_a_token_and_not_512():
    assert arithmetic.kv_bytes_per_token(n_layers=32, n_kv_heads=8, head_dim=128, bytes_per_value=2) == 128 * 2**10


def test_11_requests_of_131072_tokens_fit_beside_llama_2_70b_on_8_gpus():
    llama_2_70b = dataclasses.replace(LLAMA_70B, name="llama-2-70b", vocab_size=32_000)
    on_eight = Deployment(llama_2_70b, H100, n_gpus=8)
    assert on_eight.kv_bytes_per_token == 320 * 2**10
    assert on_eight.kv_bytes_per_token * 131_072 == 40 * 2**30
    assert on_eight.max_sequences(131_072) == 11


def test_70b_in_bf16_needs_two_gpus():
    weight_bytes = arithmetic.weight_bytes(70_553_706_496, 16)
    assert digits(weight_bytes, 1e9, 1) == "141.1"
    assert arithmetic.gpus_needed(weight_bytes, 80e9) == 2
    assert digits(arithmetic.step_seconds(weight_bytes, 0, 3.35e12, 1), 1e-3, 1) == "42.1"
    assert digits(arithmetic.step_seconds(weight_bytes, 0, 3.35e12, 2), 1e-3, 1) == "21.1"
    assert digits(Deployment(LLAMA_70B, H100, n_gpus=2).step(1, 0).seconds, 1e-3, 1) == "21.1"


@pytest.mark.parametrize(
    ("group_size", "bits_per_weight", "gigabytes", "milliseconds"),
    [(128, 4.125, "36.4", "10.9"), (32, 4.5, "39.7", "11.8"), (None, 4, "35.3", "10.5")],
)
def test_70b_in_4_bits_counts_the_scales(group_size, bits_per_weight, gigabytes, milliseconds):
    weight_bytes = arithmetic.weight_bytes(70_553_706_496, 4, group_size)
    assert arithmetic.bits_per_weight(4, group_size) == bits_per_weight
    assert digits(weight_bytes, 1e9, 1) == gigabytes
    assert digits(weight_bytes / 3.35e12, 1e-3, 1) == milliseconds
    assert arithmetic.gpus_needed(weight_bytes, 80e9) == 1


def test_a_partial_group_has_a_whole_scale():
    assert arithmetic.weight_bytes(10, 8, group_size=4) == 10 + 3 * 2


def test_weights_that_fill_a_gpu_exactly_need_one():
    assert arithmetic.gpus_needed(80e9, 80e9) == 1
    assert arithmetic.gpus_needed(80e9 + 1, 80e9) == 2


@pytest.mark.parametrize(
    ("bits", "group_size", "scale_bits", "expected"),
    [
        (8, 128, 16, 8.125),
        (4, 128, 16, 4.125),
        (4, 128, 16 + 4, 4.15625),  # and a 4-bit zero point
        (8, 32, 16, 8.5),  # Q8_0
        (4, 32, 16, 4.5),  # Q4_0
        (4, 32, 16 + 16, 5.0),  # Q4_1: a scale and a minimum
        (4, 256, 8 * (6 + 6) + 16 + 16, 4.5),  # Q4_K: 8 groups of 32 in a super-block
        (6, 256, 16 * 8 + 16, 6.5625),  # Q6_K: 16 groups of 16
    ],
)
def test_bits_per_weight_of_the_known_formats(bits, group_size, scale_bits, expected):
    assert arithmetic.bits_per_weight(bits, group_size, scale_bits) == expected


def test_blocks_of_16_tokens_of_llama_3_8b():
    assert 16 * LLAMA_8B.kv_bytes_per_token() == 2 * 2**20
    assert 8192 * LLAMA_8B.kv_bytes_per_token() == 2**30


# Roofline
def test_a_decode_step_at_2048_tokens_as_a_whole_never_computes_longer_than_it_reads():
    assert ON_H100.crossing_batch(2048) is None
    assert ON_H100.intensity(10**9, 2048) == pytest.approx(63.8, abs=0.05)  # with the FLOPs of attention
    assert 2 * LLAMA_8B.n_params / (2048 * 131_072) == pytest.approx(59.8, abs=0.05)  # without
    assert H100.ridge == pytest.approx(295.4, abs=0.05)


def test_it_could_be_only_below_415_to_420_tokens_of_context():
    without_attention = arithmetic.crossing_context(LLAMA_8B.n_params, 131_072, H100.ridge)
    assert without_attention == pytest.approx(415, abs=0.5)
    assert ON_H100.crossing_context() == pytest.approx(420.5, abs=0.1)
    assert ON_H100.crossing_batch(421) is None
    assert ON_H100.crossing_batch(420) is not None


@pytest.mark.parametrize("context", [0, 1, 64, 128, 400, 420])
def test_the_crossing_batch_is_the_first_at_which_computing_takes_longer(context):
    batch = ON_H100.crossing_batch(context)
    assert ON_H100.step(batch, context).compute_seconds >= ON_H100.step(batch, context).memory_seconds
    assert ON_H100.step(batch - 1, context).limit == "bandwidth"


def test_the_linear_layers_are_compute_bound_from_the_ridge_on_at_any_context():
    assert ON_H100.compute_bound_batch == 296  # 2 bytes a weight and 2 FLOPs: batch = FLOP/byte
    assert not ON_H100.step(295, 2048).linear.compute_bound
    assert ON_H100.step(296, 2048).linear.compute_bound
    assert not ON_H100.step(296, 2048).attention.compute_bound
    assert dataclasses.replace(ON_H100, weight_bits=4).compute_bound_batch == 74


def test_reading_the_caches_hides_no_arithmetic_of_the_linear_layers():
    plain, checking = ON_H100.step(238, 2048), ON_H100.step(238, 2048, new_tokens=5)
    assert digits(plain.linear.seconds, 1e-3, 2) == "4.79"
    assert digits(plain.attention.seconds, 1e-3, 2) == "19.07"
    assert digits(plain.seconds, 1e-3, 1) == "23.9"
    assert digits(checking.linear.seconds, 1e-3, 1) == "19.3"
    assert checking.attention == dataclasses.replace(
        plain.attention, compute_seconds=checking.attention.compute_seconds
    )
    assert digits(checking.seconds, 1e-3, 1) == "38.4"
    assert f"{ON_H100.verify_cost(238, 2048)(4):.2f}" == "1.61"
    assert checking.limit == "bandwidth"  # of the step as a whole: one maximum over everything would say 23.9 ms


def test_in_a_full_memory_at_2048_tokens_three_drafted_tokens_are_best():
    verify = ON_H100.verify_cost(238, 2048)
    assert arithmetic.best_draft_length(0.8, 0.1, verify) == 3
    assert f"{arithmetic.speculative_speedup(0.8, 3, 0.1, verify(3)):.2f}" == "1.69"


def test_a_short_prompt_takes_as_long_as_the_reading_of_the_weights():
    assert digits(ON_H100.prefill_seconds(10, attention=False), 1e-3, 3) == "4.794"
    assert digits(ON_H100.prefill_seconds(2000, attention=False), 1e-3, 1) == "64.9"
    assert digits(ON_H100.prefill_seconds(2000), 1e-3, 1) == "67.0"


def test_without_context_the_crossing_batch_is_the_ridge():
    assert ON_H100.crossing_batch(0) == 296  # 2 bytes a weight and 2 FLOPs: batch = FLOP/byte


def test_at_2048_tokens_memory_ends_the_batch():
    assert digits(ON_H100.step(237, 2048).seconds, 1e-3, 1) == "23.8"
    assert ON_H100.step(237, 2048).tokens_per_second == pytest.approx(9960, abs=5)
    largest = ON_H100.max_sequences(2048)
    assert largest == 238  # the 80 GB hold 16.06 GB of weights and 238.19 caches of 268,435,456 bytes
    assert ON_H100.limit(largest, 2048) == "bandwidth"
    assert ON_H100.limit(largest + 1, 2048) == "capacity"


def test_a_model_without_a_growing_cache_cost_can_always_cross():
    assert arithmetic.crossing_context(1e9, 100, ridge=10, attention_flops_per_token=1000) == math.inf


def test_gpus_share_bytes_flops_and_memory_equally():
    one, four = ON_H100, dataclasses.replace(ON_H100, n_gpus=4)
    assert four.step(8, 2048).seconds == pytest.approx(one.step(8, 2048).seconds / 4)
    assert four.prefill_seconds(2000) == pytest.approx(one.prefill_seconds(2000) / 4)
    assert four.crossing_batch(100) == one.crossing_batch(100)
    assert four.memory_bytes == 320e9


# Speculative decoding
@pytest.mark.parametrize(
    ("alpha", "tokens", "printed"), [(0.6, 2.3056, "2.31"), (0.8, 3.3616, "3.36"), (0.9, 4.0951, "4.10")]
)
def test_expected_tokens_of_four_drafted_ones(alpha, tokens, printed):
    assert arithmetic.expected_tokens(alpha, 4) == pytest.approx(tokens, abs=5e-5)
    assert f"{arithmetic.expected_tokens(alpha, 4):.2f}" == printed


def test_certain_acceptance_gives_k_plus_1_and_none_gives_1():
    assert [arithmetic.expected_tokens(1, k) for k in (0, 4, 7)] == [1, 5, 8]
    assert [arithmetic.expected_tokens(0, k) for k in (0, 4, 7)] == [1, 1, 1]
    assert arithmetic.expected_tokens(0.37, 0) == 1


def test_expected_tokens_are_the_sum_over_drafted_positions():
    for alpha in (0.1, 0.5, 0.99, 0.999999):
        assert arithmetic.expected_tokens(alpha, 6) == pytest.approx(sum(alpha**i for i in range(7)))


@pytest.mark.parametrize(
    ("cost", "k", "speedup"), [(0.02, 11, "3.82"), (0.05, 8, "3.09"), (0.1, 6, "2.47"), (0.2, 4, "1.87")]
)
def test_the_best_draft_length_at_alpha_0_8(cost, k, speedup):
    assert arithmetic.best_draft_length(0.8, cost) == k
    assert f"{arithmetic.speculative_speedup(0.8, k, cost):.2f}" == speedup


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("cost", [0.01, 0.1, 0.5, 0.9, 1.5])
def test_the_best_draft_length_is_found_by_trying_all(alpha, cost):
    tries = [(1 - alpha ** (k + 1)) / ((1 - alpha) * (k * cost + 1)) for k in range(300)]
    assert arithmetic.best_draft_length(alpha, cost) == tries.index(max(tries))


def test_a_draft_that_is_never_right_or_too_dear_is_not_worth_a_token():
    assert arithmetic.best_draft_length(0.0, 0.0) == 0
    assert arithmetic.best_draft_length(0.5, 0.5) == 0  # k = 1 is exactly as fast: the smaller one
    assert arithmetic.best_draft_length(1.0, 1.0) == 0
    assert arithmetic.best_draft_length(1.0, 2.0) == 0


def test_where_longer_is_always_better_a_longest_must_be_given():
    with pytest.raises(ValueError, match="give max_k"):
        arithmetic.best_draft_length(1.0, 0.1)
    with pytest.raises(ValueError, match="give max_k"):
        arithmetic.best_draft_length(0.8, 0.0)
    assert arithmetic.best_draft_length(1.0, 0.1, max_k=7) == 7
    assert arithmetic.best_draft_length(0.8, 0.0, max_k=7) == 7
    assert arithmetic.best_draft_length(0.8, 0.1, max_k=3) == 3


def test_checking_more_tokens_is_free_until_the_linear_layers_are_compute_bound():
    small, large = ON_H100.verify_cost(1, 100), ON_H100.verify_cost(256, 100)
    assert [small(k) for k in (0, 4, 70)] == [1, 1, 1]
    assert large(0) == 1
    assert large(4) > 3.5  # 1,280 tokens a step: far beyond the ridge


def test_a_large_batch_shortens_the_best_draft():
    lengths = [
        arithmetic.best_draft_length(0.8, 0.05, verify=ON_H100.verify_cost(batch, 100))
        for batch in (1, 32, 64, 128, 256)
    ]
    assert lengths[0] == 8  # as without a batch
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] <= 1


# Refusals
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arithmetic.prefill_flops(0, 5), "n_params must be positive"),
        (lambda: arithmetic.prefill_flops(1e9, 0), "n_tokens must be a whole number from 1 on, got 0"),
        (lambda: arithmetic.prefill_flops(1e9, 2.5), "n_tokens must be a whole number from 1 on, got 2.5"),
        (lambda: arithmetic.time_to_first_token(1e9, 5, 1e12, 0), "utilization must be positive"),
        (
            lambda: arithmetic.time_to_first_token(1e9, 5, 1e12, 50),
            "utilization is a share of the peak, at most 1, got 50",
        ),
        (lambda: arithmetic.decode_tokens_per_second(1e9, 0), "bandwidth must be positive"),
        (lambda: arithmetic.decode_step(0, 5, 1e9, 1e3, 1e12), "batch must be a whole number from 1 on, got 0"),
        (lambda: arithmetic.decode_step(1, -5, 1e9, 1e3, 1e12), "context and KV bytes cannot be negative, got -5"),
        (lambda: arithmetic.max_sequences(1e9, 1e8, 1e3, 0), "context must be positive"),
        (lambda: arithmetic.weight_bytes(10, 0), "bits must be positive"),
        (lambda: arithmetic.weight_bytes(10, 4, 0), "group_size must be a whole number from 1 on, got 0"),
        (lambda: arithmetic.gpus_needed(1e9, math.nan), "memory_bytes must be positive"),
        (lambda: arithmetic.step_seconds(1e9, 0, 1e12, 0), "n_gpus must be a whole number from 1 on, got 0"),
        (lambda: arithmetic.expected_tokens(1.2, 4), "alpha is a probability, 0 to 1, got 1.2"),
        (lambda: arithmetic.expected_tokens(math.nan, 4), "alpha is a probability, 0 to 1, got nan"),
        (lambda: arithmetic.expected_tokens(0.5, -1), "k must be a whole number of drafted tokens, 0 or more, got -1"),
        (lambda: arithmetic.best_draft_length(0.5, -0.1), "cost 0 or more, verify above 0, got -0.1"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bounds_need_the_standard_library_alone():
    code = (
        "import sys; import reference_impl.commands.bound; "
        "print([name for name in ('numpy', 'torch', 'tqdm', 'tokenizers') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
