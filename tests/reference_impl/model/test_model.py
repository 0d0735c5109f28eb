"""The decoder against transformers on the same weights, and against what its parts must do by definition."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor, nn

from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.bounds.rope_scaling import Llama3Scaling
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.huggingface import config_to_hf
from reference_impl.kernels import rotate
from reference_impl.model.llama import Llama
from reference_impl.model.rope import rope_frequencies, rope_tables

PLAIN = ModelConfig("tiny", 3, 48, 6, 2, 8, 80, 101, max_context=64)
STRETCHED = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=24)
VARIANTS = {
    "grouped heads, untied": PLAIN,
    "tied": replace(PLAIN, tied=True),
    "as many KV heads as heads": replace(PLAIN, n_kv_heads=6),
    "one KV head": replace(PLAIN, n_kv_heads=1),
    "heads wider than the model": replace(PLAIN, head_dim=16),
    "llama3 rope": replace(PLAIN, rope_scaling=STRETCHED, rope_theta=50.0, head_dim=16),
    "Qwen2.5": replace(PLAIN, qkv_bias=True, tied=True),
    "Qwen3": replace(PLAIN, qk_norm=True, norm_eps=1e-6),
}


class ExactRMSNorm(nn.Module):
    """transformers takes norms in float32 whatever the model's dtype; the float64 oracle must not round there."""

    def __init__(self, original: nn.Module) -> None:
        super().__init__()
        self.weight, self.eps = original.weight, original.variance_epsilon

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()


def transformers_model(config: ModelConfig, dtype: torch.dtype) -> nn.Module:
    """transformers' own model of this shape, its weights drawn at random, norms and biases included."""
    found = config_to_hf(config)
    kind = found.pop("model_type")
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **found))
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.3, generator=generator)
    return exact(model.to(dtype)) if dtype == torch.float64 else model.to(dtype)


def exact(model: nn.Module) -> nn.Module:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child).__name__.endswith("RMSNorm"):
                setattr(module, name, ExactRMSNorm(child))
    return model


def ours_with_the_weights_of(theirs: nn.Module, config: ModelConfig, dtype: torch.dtype) -> Llama:
    model = Llama(config, dtype)
    tied = {"lm_head.weight"} if config.tied else set()  # there it is the embedding once more
    tensors = [(name, value) for name, value in theirs.state_dict().items() if name not in tied]
    weights.fill(model, tensors, Path("oracle"))
    return model


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_logits_equal_those_of_transformers(name: str, dtype: torch.dtype, tolerance: float) -> None:
    config = VARIANTS[name]
    theirs = transformers_model(config, dtype)
    model = ours_with_the_weights_of(theirs, config, dtype)
    tokens = torch.randint(101, (60,), generator=torch.Generator().manual_seed(1)).tolist()
    with torch.no_grad():
        expected = theirs(torch.tensor([tokens])).logits[0]
    assert expected.abs().max() > 1  # the comparison below is about numbers of this size
    torch.testing.assert_close(model(Recompute(tokens)), expected, rtol=0, atol=tolerance)


def test_sequences_packed_into_one_pass_do_not_see_each_other() -> None:
    model = Llama(PLAIN, torch.float64).randomize(torch.Generator().manual_seed(0), std=0.3)
    first, second = [5, 7, 11, 13], [17, 19]
    batch = Recompute(first, second)
    together = model(batch)
    torch.testing.assert_close(together[:4], model(Recompute(first)), rtol=0, atol=1e-12)
    torch.testing.assert_close(together[4:], model(Recompute(second)), rtol=0, atol=1e-12)
    assert batch.last_rows.tolist() == [3, 5]


def test_later_tokens_leave_earlier_logits_as_they_were() -> None:
    model = Llama(PLAIN, torch.float64).randomize(torch.Generator().manual_seed(0), std=0.3)
    a, b = model(Recompute([1, 2, 3, 4, 5])), model(Recompute([1, 2, 3, 50, 60]))
    assert torch.equal(a[:3], b[:3])
    assert not torch.allclose(a[3], b[3])


def test_rows_picks_the_tokens_whose_logits_are_computed() -> None:
    model = Llama(PLAIN, torch.float64).randomize(torch.Generator().manual_seed(0), std=0.3)
    batch = Recompute([1, 2, 3, 4, 5])
    torch.testing.assert_close(model(batch, torch.tensor([4, 1])), model(batch)[[4, 1]], rtol=0, atol=1e-12)


def test_bfloat16_stays_close_to_float64() -> None:
    """Half precision keeps 8 bits: on these weights the logits must agree to a few per cent of their spread."""
    exactly = Llama(PLAIN, torch.float64).randomize(torch.Generator().manual_seed(0), std=0.1)
    half = Llama(PLAIN, torch.bfloat16)
    weights.fill(half, exactly.views().items(), Path("float64"))
    tokens = list(range(60))
    expected = exactly(Recompute(tokens))
    assert half(Recompute(tokens)).dtype == torch.float32  # on a CPU only the weights are halved
    assert (half(Recompute(tokens)).double() - expected).std() < 0.03 * expected.std()


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_as_many_as_the_config_counts(name: str) -> None:
    """The figures themselves are tested with the config; here they meet the tensors that a model really has."""
    model = Llama(replace(MODELS[name], max_context=8), device="meta")
    assert sum(p.numel() for p in model.parameters()) == MODELS[name].n_params
    assert sum(v.numel() for v in model.views().values()) == MODELS[name].n_params


def test_views_write_through_to_the_fused_matrices() -> None:
    model = Llama(PLAIN)
    model.views()["model.layers.1.self_attn.k_proj.weight"].fill_(3.0)
    fused = model.layers[1].wqkv.weight  # q has 48 rows, k and v 16 each
    assert (fused[48:64] == 3.0).all()
    assert (
        model.views()["model.layers.1.mlp.up_proj.weight"].data_ptr() == model.layers[1].w_gate_up.weight[80].data_ptr()
    )


def test_tied_models_hold_one_table() -> None:
    model = Llama(replace(PLAIN, tied=True))
    assert model.head.weight is model.embed
    assert "lm_head.weight" not in model.views()


def test_rope_turns_the_first_pair_by_the_position_in_radians() -> None:
    """Pair 0 has frequency 1: at position 3 the vector (1, 0) points to (cos 3, sin 3)."""
    cos, sin = rope_tables(PLAIN)
    x = torch.zeros(1, 1, 8)
    x[0, 0, 0] = 1.0
    turned = rotate(x, cos[3].view(1, 1, 8), sin[3].view(1, 1, 8))[0, 0]
    expected = torch.zeros(8)
    expected[0], expected[4] = math.cos(3), math.sin(3)
    torch.testing.assert_close(turned, expected)


def test_rope_scores_depend_on_the_distance_alone() -> None:
    cos, sin = (table.double() for table in rope_tables(PLAIN))
    q, k = torch.randn(2, 1, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    turned = lambda x, i: rotate(x, cos[i].view(1, 1, 8), sin[i].view(1, 1, 8))
    score = lambda i, j: (turned(q, i) * turned(k, j)).sum()
    torch.testing.assert_close(score(9, 4), score(50, 45), rtol=0, atol=1e-5)  # angles are float32


def test_rope_angles_stay_exact_in_half_precision() -> None:
    """At position 4,001 a bfloat16 angle would be off by up to 16 radians."""
    model = Llama(replace(PLAIN, max_context=4096), torch.bfloat16)
    assert model.cos[4001, 0].item() == pytest.approx(math.cos(4001), abs=0.005)  # bfloat16 keeps 8 bits


def test_llama3_scaling_keeps_short_wavelengths_and_divides_long_ones() -> None:
    """Llama 3.2: below 8192/4 tokens a wavelength stays, above 8192 it is stretched 32 times, between it is blended."""
    config = MODELS["llama-3.2-1b"]
    plain, scaled = rope_frequencies(replace(config, rope_scaling=None)), rope_frequencies(config)
    wavelength = 2 * math.pi / plain
    short, long = wavelength < 2048, wavelength > 8192
    assert torch.equal(scaled[short], plain[short])
    torch.testing.assert_close(scaled[long], plain[long] / 32)
    between = ~(short | long)
    assert between.any()
    assert ((scaled < plain) & (scaled > plain / 32))[between].all()


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least one token, got lengths \[2, 0\]"):
        Recompute([1, 2], [])


@pytest.mark.model
def test_smollm2_equals_transformers_on_the_same_weights() -> None:
    """In float64 to 1e-9. In float32 both are about 1e-4 away from that on logits up to 40: 1e-5 of the largest."""
    folder = weights.resolve(weights.DEFAULT_MODEL)
    model, tokenizer = weights.load()
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = tokenizer.apply_chat_template([{"role": "user", "content": "What is the capital of France?"}])
    with torch.inference_mode():
        expected = theirs(torch.tensor([tokens])).logits[0]
        assert (model(Recompute(tokens)) - expected).abs().max() < 1e-5 * expected.abs().max()
        expected = exact(theirs.double())(torch.tensor([tokens])).logits[0]
        del model
        ours = weights.load(dtype=torch.float64).model(Recompute(tokens))
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-9)
