"""Each way to run the model faster gives the logits of `Llama` without a cache: the textbook, and the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from reference_impl import kernels
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.cache.paged import PagedCache
from reference_impl.cache.recompute import Recompute
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Layer, Linear, Llama
from reference_impl.model.replay import RecordedPasses
from reference_impl.quantization.linear import QuantizedLinear
from reference_impl.quantization.model import quantize_model

SHAPE = ModelConfig("tiny", 2, 32, 4, 2, 8, 48, 60, max_context=512)
VARIANTS = {
    "untied": SHAPE,
    "tied": replace(SHAPE, tied=True),
    "Qwen2.5": replace(SHAPE, qkv_bias=True),
    "Qwen3": replace(SHAPE, qk_norm=True),
}
PIECES = [[5, 7, 11], [13], [17], [19, 23], [29]]  # a prompt, and what follows it in passes of its own
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="recording needs the CPU kernels")
Forward = Callable[..., Tensor]


def model_of(config: ModelConfig = SHAPE, dtype: torch.dtype = torch.float64) -> Llama:
    return Llama(config, dtype).randomize(torch.Generator().manual_seed(3), std=0.2)


def paged(model: Llama) -> PagedCache:
    return PagedCache(model.config, 16, 4, model.embed.dtype)


def contiguous(model: Llama) -> ContiguousCache:
    return ContiguousCache(model.config, 1, 20, model.embed.dtype)


@torch.inference_mode()
def in_pieces(forward: Forward, cache: PagedCache | ContiguousCache) -> Tensor:
    """Logits of all tokens, from one pass a piece."""
    cache.add("only")
    found = []
    for piece in PIECES:
        batch = cache.extend([("only", piece)])
        found.append(forward(batch, None).clone())
        cache.commit(batch)
    return torch.cat(found)


def textbook(model: Llama) -> Tensor:
    """`Llama` over the whole text in one pass, without a cache."""
    return model(Recompute([token for piece in PIECES for token in piece]))


@pytest.mark.parametrize("name", VARIANTS)
def test_fused_layers_give_the_textbooks_logits(name: str) -> None:
    model = model_of(VARIANTS[name])
    torch.testing.assert_close(in_pieces(FusedLlama(model), paged(model)), textbook(model), rtol=0, atol=1e-9)


def test_with_a_paged_or_a_contiguous_cache_the_textbook_gives_its_logits() -> None:
    model = model_of()
    torch.testing.assert_close(in_pieces(model, paged(model)), textbook(model), rtol=0, atol=1e-9)
    torch.testing.assert_close(in_pieces(model, contiguous(model)), textbook(model), rtol=0, atol=1e-9)


def test_fused_layers_do_the_same_operations_in_the_same_order() -> None:
    """In float64 both are plain PyTorch, so not even a rounding differs."""
    model = model_of()
    assert torch.equal(in_pieces(FusedLlama(model), paged(model)), in_pieces(model, paged(model)))


@needs_numba
@pytest.mark.parametrize("name", VARIANTS)
def test_recorded_passes_give_the_textbooks_logits(name: str) -> None:
    model = model_of(VARIANTS[name], torch.float32)
    recorded = RecordedPasses(FusedLlama(model))
    torch.testing.assert_close(in_pieces(recorded, paged(model)), textbook(model), rtol=0, atol=1e-5)
    assert (recorded.refused, len(recorded.shapes)) == ("", 3)  # passes of three, one and two tokens


@pytest.mark.parametrize("bits", [8, 4])
def test_quantized_matrices_give_fused_and_recorded_the_textbooks_logits(bits: int) -> None:
    """On a CPU the kernel rounds activations to 16 bits, in all three alike."""
    model = quantize_model(model_of(dtype=torch.float32), bits, 16)
    expected = textbook(model)
    for forward in (FusedLlama(model), RecordedPasses(FusedLlama(model))):
        torch.testing.assert_close(in_pieces(forward, paged(model)), expected, rtol=0, atol=1e-3)


def test_a_batch_without_blocks_is_the_textbooks_own() -> None:
    model = model_of()
    assert torch.equal(FusedLlama(model)(Recompute([1, 2, 3])), model(Recompute([1, 2, 3])))


@pytest.mark.parametrize("rows", [[3], [1, 2], [2, 0]])
def test_rows_picks_the_same_tokens(rows: list[int]) -> None:
    model = model_of()
    cache = contiguous(model)
    cache.add(0)
    batch = cache.extend([(0, [1, 2, 3, 4])])
    expected = model(batch, torch.tensor(rows))
    torch.testing.assert_close(FusedLlama(model)(batch, torch.tensor(rows)), expected, rtol=0, atol=1e-9)


def test_the_textbook_shows_each_matrix_its_input() -> None:
    """Calibration hooks every matrix of a layer, quantized or not."""
    model = model_of(dtype=torch.float32)
    layer = model.layers[0]
    assert isinstance(layer, Layer)
    layer.wo = QuantizedLinear(quantize_model(model_of(dtype=torch.float32), 8, 16).layers[0].wo.quantized())
    widths = {}
    for name, module in layer.named_children():
        assert isinstance(module, Linear)
        module.register_forward_pre_hook(lambda _, inputs, name=name: widths.update({name: inputs[0].shape[1]}))
    model(Recompute([1, 2, 3]))
    assert widths == {"wqkv": 32, "wo": 32, "w_gate_up": 32, "w_down": 48}


@needs_numba
@pytest.mark.parametrize(("name", "launches"), [("untied", 14), ("Qwen2.5", 14), ("Qwen3", 16)])
def test_a_recorded_step_has_no_more_launches_than_it_needs(name: str, launches: int) -> None:
    """Three look-ups (embedding, cosines, sines) and the head; five a layer, six where heads are normalised."""
    from reference_impl.kernels.cpu.recording import Recording

    model = model_of(VARIANTS[name], torch.float32)
    cache = paged(model)
    cache.add("only")
    cache.commit(cache.extend([("only", [1, 2])]))
    batch = cache.extend([("only", [3])])
    with torch.inference_mode(), Recording() as recording:
        FusedLlama(model)(batch)
    assert len(recording) == launches
    assert isinstance(batch, kernels.PagedKV)
