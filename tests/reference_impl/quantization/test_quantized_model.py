"""A whole model with quantized matrices: what is quantized, what it computes, memory meanwhile, and on disk."""

from __future__ import annotations

import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from model_files import save_letters
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode

from reference_impl.__main__ import main
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import quantized as checkpoint
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.folder import save
from reference_impl.commands import model_options, serve
from reference_impl.common.errors import WeightsError
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama
from reference_impl.quantization.calibrate import Recipe
from reference_impl.quantization.linear import QuantizedLinear
from reference_impl.quantization.model import bytes_read_per_step, parts, quantize_model
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import Speculator

SHAPE = ModelConfig("tiny", 2, 64, 4, 2, 16, 96, 50, max_context=64)
VARIANTS = {"untied": SHAPE, "tied": replace(SHAPE, tied=True), "Qwen2.5": replace(SHAPE, qkv_bias=True)}


def float_model(config: ModelConfig = SHAPE, dtype: torch.dtype = torch.float32) -> Llama:
    model = Llama(config, dtype)
    generator = torch.Generator().manual_seed(11)
    for name, view in model.views().items():
        view.normal_(1.0 if "norm" in name else 0.0, 0.2, generator=generator)
    return model


def same_in_floats(quantized: Llama) -> Llama:
    """A float model with the very values that the quantized one stands for."""
    model = float_model(replace(quantized.config, tied=False))
    model.load_state_dict(dict(quantized.named_parameters()), strict=False)
    for name, module in quantized.named_modules():
        if isinstance(module, QuantizedLinear):
            model.get_submodule(name).weight.data.copy_(module.quantized().dequantize())
    if not isinstance(quantized.head, QuantizedLinear):
        model.head.weight.data.copy_(quantized.head.weight)
    return model


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("bits", [8, 4])
def test_the_logits_are_those_of_the_dequantized_weights(name: str, bits: int) -> None:
    model = quantize_model(float_model(VARIANTS[name]), bits, 32)
    batch = Recompute([1, 2, 3, 4], [7, 8])
    torch.testing.assert_close(model(batch), same_in_floats(model)(batch), rtol=1e-3, atol=5e-3)


def test_which_weights_are_quantized_is_listed() -> None:
    model = quantize_model(float_model(VARIANTS["tied"]), 4, 32)
    found = {part.name: part for part in parts(model)}
    quantized = [name for name, part in found.items() if part.bits == 4]
    matrices = ("wqkv", "wo", "w_gate_up", "w_down")
    assert quantized == [f"layers.{i}.{name}" for i in range(2) for name in matrices] + ["head"]
    kept = [name for name, part in found.items() if part.bits is None]
    assert kept == ["embed", *(f"layers.{i}.{n}_norm" for i in range(2) for n in ("attn", "mlp")), "norm"]
    assert found["head"].shape == (50, 64)
    assert found["head"].n_bytes == 50 * 64 // 2 + 50 * 2 * 4
    assert found["embed"].n_bytes == 50 * 64 * 4


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_can_be_kept(tied: bool) -> None:
    model = quantize_model(float_model(replace(SHAPE, tied=tied)), 8, 32, head=False)
    names = [part.name for part in parts(model)]
    assert ("head" in names) != tied  # a tied head is the embedding
    assert model.head.weight is model.embed if tied else model.head.weight is not model.embed
    read = bytes_read_per_step(model)
    assert read == sum(part.n_bytes for part in parts(model) if tied or part.name != "embed")


def test_methods_that_calibrate_put_their_weights_into_the_same_layers() -> None:
    text = [[(i * 7 + j * 3) % 50 for i in range(30)] for j in range(3)]
    model = quantize_model(float_model(), recipe=Recipe("gptq", 4, 32), sequences=text)
    by_rounding = quantize_model(float_model(), recipe=Recipe("rounding", 4, 32))
    first, second = (m.layers[0].w_down.quantized() for m in (model, by_rounding))
    assert first.bits == second.bits == 4
    assert not torch.equal(first.q, second.q)
    assert torch.equal(model.head.quantized().q, by_rounding.head.quantized().q)


def test_a_quantized_model_is_not_quantized_again() -> None:
    with pytest.raises(ValueError, match="expected a float model in one process, but wqkv is a QuantizedLinear"):
        quantize_model(quantize_model(float_model()))


class Memory(TorchDispatchMode):
    """Counts the bytes of tensors that live, those that were there before included."""

    def __init__(self, model: Llama) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._seen: set[int] = set()
        for parameter in model.parameters():
            self._watch(parameter)

    def _watch(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._seen:
            return
        self._seen.add(key)
        n_bytes = storage.nbytes()
        self.now += n_bytes
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, key, n_bytes)

    def _gone(self, key: int, n_bytes: int) -> None:
        self._seen.discard(key)
        self.now -= n_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(one, torch.Tensor):
                self._watch(one)
        return out


@pytest.mark.parametrize("bits", [8, 4])
def test_memory_while_quantizing_stays_under_the_float_model_and_one_layer(bits: int) -> None:
    shape = ModelConfig("wide", 6, 512, 8, 2, 64, 1536, 64, tied=True, max_context=16)
    model = float_model(shape)
    before = sum(p.numel() * p.element_size() for p in model.parameters())
    one_layer = sum(p.numel() * p.element_size() for p in model.layers[0].parameters())
    with Memory(model) as memory:
        assert memory.now == before
        quantize_model(model, bits, 128)
    assert memory.peak <= before + one_layer
    assert memory.now < before * (0.35 if bits == 8 else 0.2)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_checkpoint_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    recipe = Recipe("rounding", 3, 40, symmetric=False, scale_dtype="float16")
    model = quantize_model(float_model(VARIANTS[name]), recipe=recipe)
    checkpoint.save(tmp_path / "model", model)
    back = weights.load_model(tmp_path / "model")
    batch = Recompute([1, 2, 3], [9])
    assert torch.equal(back(batch), model(batch))
    assert parts(back) == parts(model)
    assert back.layers[1].wo.quantized().scales.dtype is torch.float16


def test_a_head_that_was_kept_comes_back_tied(tmp_path: Path) -> None:
    model = quantize_model(float_model(VARIANTS["tied"]), 8, 32, head=False)
    checkpoint.save(tmp_path / "model", model)
    back = checkpoint.load(tmp_path / "model")
    assert back.head.weight is back.embed
    assert torch.equal(back(Recompute([5, 6])), model(Recompute([5, 6])))


def test_a_float_model_is_not_written_as_a_quantized_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no matrix of this model is quantized"):
        checkpoint.save(tmp_path / "model", float_model())


@pytest.fixture
def written(tmp_path: Path) -> Path:
    checkpoint.save(tmp_path / "model", quantize_model(float_model(), 4, 32))
    return tmp_path / "model"


def test_a_file_that_is_cut_short_is_named(written: Path) -> None:
    path = written / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(WeightsError, match=rf"{path}: .* damaged or cut short"):
        checkpoint.load(written)
    path.unlink()
    with pytest.raises(WeightsError, match=rf"{path}: no such file"):
        checkpoint.load(written)


def change(written: Path, edit: Any) -> None:
    path = written / "model.safetensors"
    tensors = load_file(path)
    described = checkpoint._read(path)[1]
    edit(tensors, described)
    save_file(tensors, path, {"quantized": json.dumps(described)})


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t, d: t.pop("layers.1.wo.scales"), r"matrix layers.1.wo lacks 'layers.1.wo.scales'"),
        (lambda t, d: t.pop("norm"), r"expected tensor norm of shape \[64\], found None"),
        (lambda t, d: t.update(extra=torch.ones(1)), "tensor extra has no place in this model"),
        (lambda t, d: d["head"].update(columns=60), r"matrix head: a matrix \[50, 64\] is expected"),
        (lambda t, d: d["head"].update(bits=8), "matrix head: 64 values of 8 bits need 64 bytes a row, got 32"),
        (lambda t, d: t.update({"head.q": t["head.q"][:7]}), "matrix head: expected 50 rows, found 7"),
        (lambda t, d: t["head.scales"].fill_(float("nan")), "matrix head: scales must be finite"),
        (lambda t, d: d.pop("head"), "expected tensor head.weight"),
    ],
)
def test_what_does_not_fit_in_a_checkpoint_is_named(written: Path, edit: Any, message: str) -> None:
    change(written, edit)
    with pytest.raises(WeightsError, match=f"model.safetensors: {message}"):
        checkpoint.load(written)


def test_another_format_is_named(written: Path) -> None:
    config = json.loads((written / "config.json").read_text())
    config["quantization_config"]["format"] = 99
    (written / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError, match=r"config.json: expected llm-serving-course format 1, found .*99"):
        checkpoint.load(written)


def test_the_engine_answers_the_same_with_batches_blocks_and_drafts_as_alone() -> None:
    model = quantize_model(float_model(), 8, 32)
    requests = [Request(i, tuple(range(1, 5 + i)), max_tokens=10) for i in range(4)]
    alone = {r.id: Engine.for_llama(model, EngineConfig(n_blocks=16)).run([r])[r.id].tokens for r in requests}
    together = Engine.for_llama(model, EngineConfig(n_blocks=32, max_running=3, chunk_size=2)).run(requests)
    drafted = Engine.for_llama(model, EngineConfig(n_blocks=32), strategy=Speculator(NgramDraft())).run(requests)
    assert {i: done.tokens for i, done in together.items()} == alone
    assert {i: done.tokens for i, done in drafted.items()} == alone


def test_the_command_writes_a_folder_that_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "float", tmp_path / "int4"
    save(source, SHAPE, float_model().views().items())
    tokenizer = weights.load_tokenizer  # the folder has none: the command needs one
    assert main(["quantize-model", "--model", str(source), "--output", str(target)]) == 2
    assert "tokenizer.json" in capsys.readouterr().err
    assert not target.exists()
    assert tokenizer is weights.load_tokenizer


@pytest.mark.parametrize("bits", ["8", "4"])
def test_quantizing_on_the_fly_gives_the_very_model_that_the_command_writes(bits: str, tmp_path: Path) -> None:
    source, target = save_letters(tmp_path / "float"), tmp_path / "quantized"
    options = ["--model", str(source), "--weight-bits", bits, "--group-size", "16"]
    assert main(["quantize-model", *options, "--output", str(target)]) == 0
    batch = Recompute([1, 2, 3, 4], [7, 8])
    serving = serve._parser().parse_args(options)
    on_the_fly = model_options.quantize(weights.load(source).model, serving)
    assert torch.equal(on_the_fly(batch), weights.load(target).model(batch))
