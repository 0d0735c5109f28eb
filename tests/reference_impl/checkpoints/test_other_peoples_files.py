"""Checkpoints as people really have them: training settings, padded vocabularies, templates, odd ways to store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import gguf
import pytest
import tokenizers
import torch
from model_files import TINY, random_model, write_gguf
from safetensors.torch import load_file, save_file
from tokenizers import decoders, models, pre_tokenizers
from transformers.utils.chat_template_utils import render_jinja_template

from reference_impl.__main__ import main
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import chat_template, weights
from reference_impl.checkpoints.folder import save
from reference_impl.checkpoints.gguf import GgufFile, GgufTokenizer
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama

TOKENS = [3, 1, 4, 1, 5]


def words(*vocabulary: str) -> tokenizers.Tokenizer:
    """Each word is one token."""
    backend = tokenizers.Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token=vocabulary[0]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return backend


def folder_of(path: Path, model: Llama, backend: tokenizers.Tokenizer) -> Path:
    save(path, model.config, model.views().items(), Tokenizer(backend))
    return path


# --- tokenizers


def test_truncation_and_padding_set_for_training_are_not_obeyed(tmp_path: Path) -> None:
    backend = words("?", "a")
    backend.enable_truncation(8)
    backend.enable_padding(length=20)
    backend.save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.from_folder(tmp_path).encode("a " * 12) == [1] * 12


def test_an_id_among_the_padding_of_the_vocabulary_has_no_text(tmp_path: Path) -> None:
    model = random_model(replace(TINY, vocab_size=64))
    path = folder_of(tmp_path / "m", model, words(*(f"w{i}" for i in range(50))))
    tokenizer = weights.load(path).tokenizer
    assert tokenizer.decode([1, 60, 2]) == tokenizer.decode([1, 2])
    with pytest.raises(ValueError, match="token 64 is outside the vocabulary of 64"):
        tokenizer.decode([64])


def test_a_tokenizer_larger_than_the_model_is_refused_with_both_sizes(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "m", random_model(), words(*(f"w{i}" for i in range(51))))
    with pytest.raises(WeightsError, match="its tokenizer knows 51 tokens, but the model has embeddings for 50"):
        weights.load(path)


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_a_metaspace_decoder_drops_the_space_that_it_prepends(scheme: str) -> None:
    backend = tokenizers.Tokenizer(models.WordLevel({"?": 0, "▁hello": 1, "▁world": 2}, unk_token="?"))
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    assert Tokenizer(backend).decode([1, 2]) == backend.decode([1, 2])
    assert Tokenizer(backend).decode([1, 2]).lstrip() == "hello world"


@pytest.mark.parametrize("found", ["</s>", [2, "</s>"], True, 2.0])
def test_an_end_token_that_is_no_number_is_refused(tmp_path: Path, found: object) -> None:
    words("?", "a").save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": found}))
    with pytest.raises(WeightsError, match=r"generation_config\.json: expected a token's number as eos_token_id"):
        Tokenizer.from_folder(tmp_path)


def test_a_prompt_that_is_no_text_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder_of(tmp_path / "m", random_model(), words("?", "a"))
    assert main(["generate", "--model", str(path), "--raw", "--prompt", "a\udcff"]) == 2
    error = capsys.readouterr().err
    assert "the text is not valid Unicode: character 2" in error
    assert error.count("\n") == 1


def gguf_tokenizer(user_defined: list[int], add_bos: bool) -> Tokenizer:
    tokens = ["<s>", "<think>", "Ġ", "    ", *sorted({*pre_tokenizers.ByteLevel.alphabet()} - {"Ġ"})]
    parts = GgufTokenizer("gpt2", "smollm", tokens, [], [0], user_defined, None, 0, None, add_bos, "{{ bos_token }}hi")
    return Tokenizer.from_gguf(parts, "m.gguf")


def test_user_defined_tokens_of_a_gguf_file_are_found_whole_and_keep_their_text() -> None:
    tokenizer = gguf_tokenizer([1, 3], add_bos=False)
    assert tokenizer.encode("<think>    ") == [1, 3]
    assert tokenizer.decode([1, 3]) == "<think>    "


def test_a_gguf_file_that_asks_for_it_gets_its_first_token_once() -> None:
    tokenizer = gguf_tokenizer([], add_bos=True)
    plain = gguf_tokenizer([], add_bos=False).encode("hi")
    assert tokenizer.encode("hi") == [0, *plain]
    assert tokenizer.apply_chat_template([]) == [0, *plain]


# --- chat templates

CHAT = [{"role": "user", "content": "a < b & 'c' \n日本"}, {"role": "assistant", "content": "no"}]
TEMPLATES = {
    "generation": "{% for m in messages %}{% generation %}[{{ m.content }}]{% endgeneration %}{% endfor %}",
    "date": "{{ strftime_now('%d %b %Y') }}{% if strftime_now is defined %} today{% endif %}",
    "no tools": "{% if tools is not none %}tools{% else %}none{% endif %}{{ documents is none }}",
    "undefined": "{{ date_string is defined }}{{ enable_thinking | default(true) }}",
    "json": "{{ messages | tojson }}{{ messages[0] | tojson(indent=2) }}",
    "loop controls": "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% endfor %}",
    "trimmed blocks": "{% for m in messages %}\n    {% if true %}\n{{ m.role }}\n    {% endif %}\n{% endfor %}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "special tokens": "{{ bos_token }}{{ unk_token }}{{ messages[0]['content'].strip() }}{{ eos_token }}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_renders_as_transformers_renders_it(name: str) -> None:
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    expected = render_jinja_template([CHAT], chat_template=TEMPLATES[name], **special)[0][0]
    found = Tokenizer(words("?"), chat_template=TEMPLATES[name], special_tokens=special).render_chat(CHAT, False)
    assert found == expected


def test_the_date_in_a_template_is_the_clocks() -> None:
    found = chat_template.render("{{ strftime_now('%Y-%m-%d') }}", {}, now=lambda: datetime(2024, 7, 26))
    assert found == "2024-07-26"


# --- weights


def rewrite(path: Path, change: dict[str, torch.Tensor | None], config: dict[str, object] | None = None) -> None:
    """Replaces tensors of a saved folder, or drops them, and settings of its config.json."""
    file = path / "model.safetensors"
    tensors = load_file(file) | change
    save_file({k: v for k, v in tensors.items() if v is not None}, file, {"format": "pt"})
    settings = json.loads((path / "config.json").read_text()) | (config or {})
    (path / "config.json").write_text(json.dumps(settings))


def saved(path: Path, tied: bool = False) -> Llama:
    model = random_model(replace(TINY, tied=tied))
    save(path, model.config, model.views().items())
    return model


def test_a_stored_head_that_differs_from_the_embedding_is_used_although_tied_is_claimed(tmp_path: Path) -> None:
    original = saved(tmp_path / "m")
    rewrite(tmp_path / "m", {}, {"tie_word_embeddings": True})
    model = weights.load_model(tmp_path / "m")
    assert torch.equal(model(Recompute(TOKENS)), original(Recompute(TOKENS)))


def test_a_second_copy_of_a_tied_matrix_changes_nothing(tmp_path: Path) -> None:
    original = saved(tmp_path / "m", tied=True)
    rewrite(tmp_path / "m", {"lm_head.weight": original.embed.clone()})
    assert weights.load_model(tmp_path / "m").config.tied


def test_a_tied_model_that_stores_only_the_head_loads(tmp_path: Path) -> None:
    original = saved(tmp_path / "m", tied=True)
    rewrite(tmp_path / "m", {"lm_head.weight": original.embed.clone(), "model.embed_tokens.weight": None})
    model = weights.load_model(tmp_path / "m")
    assert torch.equal(model(Recompute(TOKENS)), original(Recompute(TOKENS)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (torch.full((64,), float("nan")), "holds values that are not finite numbers"),
        (torch.ones(64, dtype=torch.int8), r"in floating point, found torch\.int8"),
        (torch.ones(64, dtype=torch.complex64), r"in floating point, found torch\.complex64"),
    ],
)
def test_weights_that_are_no_real_numbers_are_refused_with_their_name(
    tmp_path: Path, value: torch.Tensor, reason: str
) -> None:
    saved(tmp_path / "m")
    rewrite(tmp_path / "m", {"model.norm.weight": value})
    with pytest.raises(WeightsError, match=rf"tensor model\.norm\.weight {reason}"):
        weights.load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rms_norm_eps", -1.0),
        ("rms_norm_eps", float("nan")),
        ("rope_theta", -1.0),
        ("rope_theta", float("inf")),
        ("hidden_size", "64"),
        ("num_hidden_layers", 2.5),
        ("num_attention_heads", True),
        ("vocab_size", None),
        ("max_position_embeddings", 0),
        ("tie_word_embeddings", "false"),
        ("rope_scaling", "linear"),
        ("partial_rotary_factor", 0.5),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(tmp_path: Path, setting: str, value: object) -> None:
    saved(tmp_path / "m")
    changes = {setting: value} | ({"rope_parameters": None} if setting == "rope_theta" else {})
    rewrite(tmp_path / "m", {}, changes)
    with pytest.raises(WeightsError, match=rf"config\.json: .*{setting}"):
        weights.load_model(tmp_path / "m")


def test_partial_rotation_is_refused_in_either_spelling(tmp_path: Path) -> None:
    saved(tmp_path / "m")
    rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
    rewrite(tmp_path / "m", {}, {"rope_parameters": rope})
    with pytest.raises(WeightsError, match=r"config\.json: .*partial_rotary_factor"):
        weights.load_model(tmp_path / "m")


def test_a_big_endian_gguf_file_is_named_as_that(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", random_model())
    data = path.read_bytes()
    path.write_bytes(data[:4] + data[4:8][::-1] + data[8:])
    with pytest.raises(WeightsError, match=r"m\.gguf: its numbers are big-endian"):
        GgufFile(path)


def test_control_and_user_defined_tokens_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list(["a", "<s>", "<think>"])
    writer.add_token_types([gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts = GgufFile(path).tokenizer()
    assert (parts.control, parts.user_defined) == ([1], [2])
