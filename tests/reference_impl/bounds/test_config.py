"""Shapes and counts of the models the course talks about, against the published parameter counts."""

import dataclasses

import pytest

from reference_impl.bounds.config import MODELS, ModelConfig, find_model

PUBLISHED = {  # name: (parameters with tied embeddings counted once, KV bytes a token in bf16)
    "smollm2-135m": (134_515_008, 23_040),
    "qwen2.5-0.5b": (494_032_768, 12_288),
    "qwen3-0.6b": (596_049_920, 114_688),
    "llama-3.2-1b": (1_235_814_400, 32_768),
    "qwen3-4b": (4_022_468_096, 147_456),
    "llama-2-7b": (6_738_415_616, 524_288),
    "llama-3-8b": (8_030_261_248, 131_072),
    "llama-2-13b": (13_015_864_320, 819_200),
    "llama-3-70b": (70_553_706_496, 327_680),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_published_parameters_and_kv_bytes(name):
    n_params, kv_bytes = PUBLISHED[name]
    assert MODELS[name].n_params == n_params
    assert MODELS[name].kv_bytes_per_token() == kv_bytes


def test_every_preset_is_checked_above():
    assert set(MODELS) == set(PUBLISHED)
    assert all(config.name == name for name, config in MODELS.items())


def test_leaving_the_norms_out_gives_the_count_of_cs336():
    assert MODELS["llama-2-13b"].n_params_without_norms == 13_015_449_600


def test_with_8_kv_heads_the_k_and_v_projections_shrink_too():
    grouped = dataclasses.replace(MODELS["llama-2-13b"], n_kv_heads=8)
    assert grouped.n_params_without_norms == 11_337_728_000
    assert grouped.kv_bytes_per_token() == 163_840


def test_kv_bytes_count_kv_heads_and_not_query_heads():
    assert MODELS["llama-3-8b"].kv_bytes_per_token() == 128 * 1024  # 512 KiB would be all 32 heads
    assert MODELS["llama-3-70b"].kv_bytes_per_token() == 320 * 1024


def test_kv_bytes_follow_the_width_of_a_value():
    assert MODELS["llama-3-8b"].kv_bytes_per_token(bytes_per_value=1) == 65_536
    assert MODELS["llama-3-8b"].kv_bytes_per_token(bytes_per_value=4) == 262_144


def test_a_step_reads_a_tied_table_as_the_output_head_but_only_looks_up_an_untied_one():
    assert MODELS["llama-3-8b"].params_read_per_step == 8_030_261_248 - 128_256 * 4096
    assert MODELS["llama-3.2-1b"].params_read_per_step == 1_235_814_400


def test_a_small_shape_counted_by_hand():
    tiny = ModelConfig("tiny", 1, d_model=4, n_heads=2, n_kv_heads=1, head_dim=2, d_ff=8, vocab_size=10)
    # tables 2*40; q and o 2*16; k and v 2*8; feed-forward 3*32; norms 3*4
    assert tiny.n_params == 80 + 32 + 16 + 96 + 12
    assert dataclasses.replace(tiny, tied=True).n_params == 236 - 40
    assert dataclasses.replace(tiny, qkv_bias=True).n_params == 236 + 4 + 2 + 2
    assert dataclasses.replace(tiny, qk_norm=True).n_params == 236 + 4


def test_a_shape_that_no_model_can_have_is_refused_by_name():
    with pytest.raises(ValueError, match=r"llama-3-8b: 32 query heads cannot share 5 KV heads"):
        dataclasses.replace(MODELS["llama-3-8b"], n_kv_heads=5)
    with pytest.raises(ValueError, match=r"llama-3-8b: n_layers must be positive, got 0"):
        dataclasses.replace(MODELS["llama-3-8b"], n_layers=0)


def test_an_unknown_model_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown model 'gpt-9'; known: smollm2-135m, .*llama-3-70b"):
        find_model("gpt-9")
