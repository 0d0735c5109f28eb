"""AWQ: folding changes nothing before rounding, and the search protects what meets large inputs."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.recompute import Recompute
from reference_impl.model.llama import Llama
from reference_impl.quantization.awq import Inputs, fold_into_norm, fold_into_rows, scale_layer, search
from reference_impl.quantization.calibrate import Recipe, calibration_inputs, quantize_layers
from reference_impl.quantization.gptq import output_error
from reference_impl.quantization.rounding import quantize

SEQUENCES = [torch.randint(48, (12,), generator=torch.Generator().manual_seed(i)).tolist() for i in range(6)]


def model(n_kv_heads: int, qkv_bias: bool = False) -> Llama:
    """Two layers in float64 whose norms let a few inputs through much larger than the rest."""
    numbers = torch.Generator().manual_seed(0)
    config = ModelConfig("toy", 2, 32, 4, n_kv_heads, 8, 40, 48, tied=True, qkv_bias=qkv_bias)
    made = Llama(config, torch.float64).randomize(numbers, 0.3)
    with torch.no_grad():
        for layer in made.layers:
            for gain in (layer.attn_norm, layer.mlp_norm):
                gain[:3] = 20.0
    return made


def rounded(bits: int, width: int, weight: torch.Tensor) -> torch.Tensor:
    return quantize(weight, bits, width).dequantize(weight.dtype)


@pytest.mark.parametrize(("n_kv_heads", "qkv_bias"), [(4, False), (4, True), (2, False), (1, True)])
def test_folding_leaves_the_float_logits_unchanged(n_kv_heads, qkv_bias):
    folded = model(n_kv_heads, qkv_bias)
    batch = Recompute(*SEQUENCES[:2])
    before = folded(batch)
    for i in range(2):
        inputs = calibration_inputs(folded, SEQUENCES, i)
        ratios = scale_layer(folded.layers[i], folded.config, inputs, partial(rounded, 3, 8))
        assert any(ratio > 0 for ratio in ratios.values())
    torch.testing.assert_close(folded(batch), before, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("n_kv_heads", "names"), [(4, {"wo", "wqkv", "w_gate_up", "w_down"}), (2, {"wqkv", "w_gate_up", "w_down"})]
)
def test_v_is_not_folded_into_o_where_query_heads_share_value_heads(n_kv_heads, names):
    found = model(n_kv_heads)
    inputs = calibration_inputs(found, SEQUENCES, 0)
    assert scale_layer(found.layers[0], found.config, inputs, partial(rounded, 4, 8)).keys() == names


def test_the_gate_is_never_divided():
    found = model(4)
    gate = found.layers[0].w_gate_up.weight[:40].clone()
    inputs = calibration_inputs(found, SEQUENCES, 0)
    gain = found.layers[0].mlp_norm.clone()
    scale_layer(found.layers[0], found.config, inputs, partial(rounded, 3, 8))
    s = gain / found.layers[0].mlp_norm  # the columns of gate and up were multiplied by it, and nothing else was done
    torch.testing.assert_close(found.layers[0].w_gate_up.weight[:40], gate * s)


def test_folding_through_the_gate_would_change_the_model():
    changed = model(4)
    batch = Recompute(*SEQUENCES[:2])
    before = changed(batch)
    layer = changed.layers[0]
    fold_into_rows(layer.w_gate_up.weight[:40], layer.w_down.weight, torch.linspace(0.5, 2, 40))
    assert (changed(batch) - before).abs().max() > 0.01


def test_a_norm_and_the_layer_behind_it_take_a_factor_exactly():
    gain, linear, x = torch.rand(8).double(), torch.randn(5, 8).double(), torch.randn(3, 8).double()
    before = (x * gain) @ linear.T
    fold_into_norm(gain, linear, torch.linspace(0.1, 10, 8))
    torch.testing.assert_close((x * gain) @ linear.T, before)


def salient() -> tuple[torch.Tensor, Inputs]:
    """Two of 64 inputs are 50 times as large as the others."""
    numbers = torch.Generator().manual_seed(0)
    sizes = torch.ones(64).double()
    sizes[[5, 40]] = 50.0
    x = torch.randn(400, 64, generator=numbers).double() * sizes
    return torch.randn(24, 64, generator=numbers).double(), Inputs(x.T @ x / 400, x.abs().mean(0))


def test_protecting_the_inputs_that_matter_cuts_the_output_error():
    weight, inputs = salient()
    s, ratio = search(weight, inputs, partial(rounded, 3, 64))
    plain = output_error(weight, rounded(3, 64, weight), inputs.hessian)
    scaled = output_error(weight, rounded(3, 64, weight * s) / s, inputs.hessian)
    assert 0 < ratio < 1
    assert scaled < 0.6 * plain
    assert set(s.argsort(descending=True)[:2].tolist()) == {5, 40}


def test_with_one_ratio_to_try_it_is_plain_rounding():
    weight, inputs = salient()
    s, ratio = search(weight, inputs, partial(rounded, 3, 64), steps=1)
    assert ratio == 0
    assert s.tolist() == [1.0] * 64


def test_a_grid_that_loses_nothing_keeps_ratio_0():
    weight, inputs = salient()
    _, ratio = search(weight, inputs, lambda w: w)
    assert ratio == 0


def test_ratio_0_for_a_whole_model_equals_rounding_it():
    plain, scaled = model(2), model(2)
    a = quantize_layers(plain, Recipe("rounding", 4, 16), progress=False)
    b = quantize_layers(scaled, Recipe("awq", 4, 16, steps=1), SEQUENCES, progress=False)
    assert all(torch.equal(a[name].q, b[name].q) for name in a)


def test_inputs_that_are_always_zero_do_no_harm():
    weight, inputs = salient()
    hessian, size = inputs.hessian.clone(), inputs.size.clone()
    hessian[7], hessian[:, 7], size[7] = 0, 0, 0
    s, _ = search(weight, Inputs(hessian, size), partial(rounded, 3, 64))
    assert s.isfinite().all()
    assert (s > 0).all()
    none, _ = search(weight, Inputs(torch.zeros(64, 64).double(), torch.zeros(64).double()), partial(rounded, 3, 64))
    assert none.tolist() == [1.0] * 64


def test_the_original_is_left_alone_by_the_search():
    weight, inputs = salient()
    before = copy.deepcopy(weight)
    search(weight, inputs, partial(rounded, 3, 64))
    assert torch.equal(weight, before)
