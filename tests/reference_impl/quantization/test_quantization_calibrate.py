"""A whole model, layer by layer: which modules change, the same result from the same text, and after an interrupt."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.recompute import Recompute
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama
from reference_impl.quantization import calibrate
from reference_impl.quantization.calibrate import LINEARS, Recipe, calibration_inputs, quantize_layers
from reference_impl.quantization.forward import advance, enter, hidden_states, packed
from reference_impl.quantization.rounding import quantize

CONFIG = ModelConfig("toy", 3, 32, 4, 2, 8, 40, 48, tied=True)
SEQUENCES = [torch.randint(48, (n,), generator=torch.Generator().manual_seed(n)).tolist() for n in (20, 30, 15, 40)]
GPTQ = Recipe("gptq", 3, 16)


def model(dtype: torch.dtype = torch.float32) -> Llama:
    """Three random layers; some inputs of each are ten times as large as the rest, as in models that were trained."""
    made = Llama(CONFIG, dtype).randomize(torch.Generator().manual_seed(0), 0.3)
    with torch.no_grad():
        for layer in made.layers:
            for gain in (layer.attn_norm, layer.mlp_norm):
                gain[:2] = 10.0
    return made


def logits(model: Llama) -> torch.Tensor:
    return model(Recompute(*SEQUENCES[:2]))


@pytest.mark.parametrize("method", ["rounding", "gptq", "awq"])
def test_the_four_linear_layers_of_every_layer_are_quantized_and_nothing_else(method):
    changed, before = model(), model()
    found = quantize_layers(changed, Recipe(method, 4, 16), SEQUENCES, progress=False)
    assert sorted(found) == sorted(f"layers.{i}.{name}" for i in range(3) for name in LINEARS)
    for i, layer in enumerate(changed.layers):
        for name in LINEARS:
            assert torch.equal(getattr(layer, name).weight, found[f"layers.{i}.{name}"].dequantize())
    assert torch.equal(changed.embed, before.embed)
    assert torch.equal(changed.norm, before.norm)
    same_norms = all(torch.equal(a.attn_norm, b.attn_norm) for a, b in zip(changed.layers, before.layers, strict=True))
    assert same_norms == (method != "awq")  # AWQ keeps its factors there


def test_methods_that_look_at_inputs_come_closer_to_the_float_model_than_rounding():
    reference = logits(model())
    errors = {}
    for method in ("rounding", "gptq", "awq"):
        changed = model()
        quantize_layers(changed, Recipe(method, 3, 16), SEQUENCES, progress=False)
        errors[method] = float((logits(changed) - reference).pow(2).mean())
    assert errors["gptq"] < errors["rounding"]
    assert errors["awq"] < errors["rounding"]


def test_a_layer_is_calibrated_with_what_the_quantized_layers_before_it_compute(monkeypatch):
    seen = []
    observe = calibrate.observe
    monkeypatch.setattr(calibrate, "observe", lambda *a: seen.append(observe(*a)) or seen[-1])
    changed = model(torch.float64)
    quantize_layers(changed, GPTQ, SEQUENCES, progress=False)
    expected = calibration_inputs(changed, SEQUENCES, 2)  # layers 0 and 1 are quantized by now
    torch.testing.assert_close(seen[2]["wqkv"].hessian, expected["wqkv"].hessian)
    unquantized = calibration_inputs(model(torch.float64), SEQUENCES, 2)
    assert (seen[2]["wqkv"].hessian - unquantized["wqkv"].hessian).abs().max() > 0.01


def test_statistics_are_means_over_all_tokens_of_all_passes():
    whole = calibration_inputs(model(torch.float64), SEQUENCES, 1)
    states = [(batch, enter(model(torch.float64), batch)) for batch in packed(SEQUENCES, 30)]
    made = model(torch.float64)
    with torch.no_grad():
        in_parts = calibrate.observe(made, 1, [(b, advance(made, 0, b, x)) for b, x in states])
    for name in LINEARS:
        torch.testing.assert_close(in_parts[name].hessian, whole[name].hessian)
        torch.testing.assert_close(in_parts[name].size, whole[name].size)
        assert whole[name].hessian.shape == (getattr(made.layers[1], name).weight.shape[1],) * 2


@pytest.mark.parametrize("recipe", [GPTQ, Recipe("awq", 4, 16, symmetric=False)])
def test_an_interrupted_run_goes_on_after_its_last_layer_with_the_same_result(tmp_path, monkeypatch, recipe):
    whole = model()
    expected = quantize_layers(whole, recipe, SEQUENCES, progress=False)

    class InterruptError(Exception):
        pass

    work = calibrate._quantize_layer
    left = [2]

    def twice(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise InterruptError
        return work(*arguments)

    monkeypatch.setattr(calibrate, "_quantize_layer", twice)
    with pytest.raises(InterruptError):
        quantize_layers(model(), recipe, SEQUENCES, folder=tmp_path / "run", progress=False)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "layer-000.safetensors",
        "layer-001.safetensors",
        "run.json",
    ]
    left[0] = 1  # only the third layer may be computed
    resumed = model()
    found = quantize_layers(resumed, recipe, SEQUENCES, folder=tmp_path / "run", progress=False)
    for name, weight in expected.items():
        assert torch.equal(found[name].q, weight.q)
        assert torch.equal(found[name].scales, weight.scales)
    assert torch.equal(logits(resumed), logits(whole))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"recipe": replace(GPTQ, bits=4)}, "recipe"),
        ({"sequences": SEQUENCES[:2]}, "text"),
        ({"model": Llama(CONFIG).randomize(torch.Generator().manual_seed(1))}, "model"),
    ],
)
def test_a_folder_of_another_run_is_refused_with_what_differs(tmp_path, change, named):
    quantize_layers(model(), GPTQ, SEQUENCES, folder=tmp_path, progress=False)
    with pytest.raises(ValueError, match=f"holds a run with another {named}; take another folder"):
        quantize_layers(
            **(
                {"model": model(), "recipe": GPTQ, "sequences": SEQUENCES, "folder": tmp_path, "progress": False}
                | change
            )
        )


def test_a_damaged_layer_is_named(tmp_path):
    quantize_layers(model(), GPTQ, SEQUENCES, folder=tmp_path, progress=False)
    path = tmp_path / "layer-001.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(WeightsError, match=r"layer-001\.safetensors: expected a whole quantized layer"):
        quantize_layers(model(), GPTQ, SEQUENCES, folder=tmp_path, progress=False)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(WeightsError, match=r"run\.json: expected what the run"):
        quantize_layers(model(), GPTQ, SEQUENCES, folder=tmp_path, progress=False)


def test_place_takes_the_weights_and_nothing_is_kept():
    placed = []
    made = model()
    found = quantize_layers(
        made, Recipe("rounding", 8, 16), place=lambda i, name, weight: placed.append((i, name)), progress=False
    )
    assert found == {}
    assert placed == [(i, name) for i in range(3) for name in LINEARS]
    assert torch.equal(logits(made), logits(model()))


def test_bfloat16_weights_and_biases_work_too():
    config = replace(CONFIG, qkv_bias=True, n_kv_heads=4)
    for method in ("gptq", "awq"):
        made = Llama(config, torch.bfloat16).randomize(torch.Generator().manual_seed(0), 0.3)
        before = logits(made)
        quantize_layers(made, Recipe(method, 8, 16), SEQUENCES, progress=False)
        assert (logits(made) - before).norm() < 0.1 * before.norm()


def test_what_cannot_be_done_is_said():
    with pytest.raises(ValueError, match="gptq needs text to calibrate with"):
        quantize_layers(model(), GPTQ, progress=False)
    with pytest.raises(ValueError, match="method must be one of rounding, gptq, awq, got 'best'"):
        Recipe("best", 4, 32)
    with pytest.raises(ValueError, match="scale_dtype must be"):
        Recipe("awq", 4, 32, scale_dtype="half-precision")
    with pytest.raises(ValueError, match="the model has layers 0 to 2, got 3"):
        calibration_inputs(model(), SEQUENCES, 3)


def test_hidden_states_are_what_the_head_turns_into_logits():
    made = model(torch.float64)
    states = hidden_states(made, SEQUENCES, most=40)
    assert [len(state) for state in states] == [20, 30, 15, 40]
    with torch.no_grad():
        for state, sequence in zip(states, SEQUENCES, strict=True):
            torch.testing.assert_close(made.head(state), made(Recompute(sequence)))


def test_rounding_a_model_is_rounding_its_matrices():
    made = model()
    matrix = made.layers[1].w_down.weight.clone()
    found = quantize_layers(made, Recipe("rounding", 4, 16, scale_dtype="float32"), progress=False)
    assert torch.equal(found["layers.1.w_down"].q, quantize(matrix, 4, 16).q)
