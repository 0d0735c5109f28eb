"""Text to tokens and back: nothing is lost, no half character ever comes out of a stream, templates stay boxed in."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import regex
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from reference_impl.checkpoints import weights
from reference_impl.checkpoints.fetch import default_gguf_path
from reference_impl.checkpoints.gguf import GgufFile, GgufTokenizer
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.common.errors import WeightsError

TRICKY = [
    "",
    " ",
    "Hello, world!",
    "In 2024 it cost 1234567.89 €",
    "we'll they're I'VE 'tis",
    "  two  spaces\t\ttabs\r\n\n\nlines  ",
    "def f(x):\n    return x**2  # Kommentar",
    "naïve café, Straße, Łódź",
    "e\u0301 a\u0308\u0323 combining",
    "日本語のテキスト。한국어 中文",
    "👩‍👩‍👧 🏳️‍🌈 👍🏽",
    "½ ² ١٢٣ Ⅷ",
    "\u200b\ufeff\u00a0",
    "مرحبا שלום",
    "<|im_start|>user\nhi<|im_end|>",
]


@cache
def byte_tokenizer() -> Tokenizer:
    """One token for each of the 256 bytes and one special token: every character outside ASCII is split."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=alphabet, special_tokens=["<|end|>"]))
    return Tokenizer(backend, eos_ids=[0], special_tokens={"eos_token": "<|end|>"})


def ids_of(data: bytes) -> list[int]:
    """Byte-level ids: GPT-2 sorts its stand-ins, so the id is looked up and not computed."""
    by_bytes = {byte_tokenizer().token_bytes(i): i for i in range(257)}
    return [by_bytes[bytes([b])] for b in data]


@given(st.text())
def test_decoding_gives_the_text_back(text: str) -> None:
    tokenizer = byte_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text.replace("<|end|>", "")


@given(st.text())
def test_a_stream_hands_out_whole_characters_as_soon_as_they_are_complete(text: str) -> None:
    text = text.replace("<|end|>", "")
    stream = byte_tokenizer().stream()
    pieces = [stream.push(i) for i in ids_of(text.encode())]
    assert [piece for piece in pieces if piece] == list(text)
    assert stream.flush() == ""


@given(st.binary())
def test_any_bytes_decode_alike_at_once_and_in_a_stream(data: bytes) -> None:
    stream = byte_tokenizer().stream()
    streamed = "".join([*(stream.push(i) for i in ids_of(data)), stream.flush()])
    assert streamed == data.decode("utf-8", "replace") == byte_tokenizer().decode(ids_of(data))
    assert streamed == byte_tokenizer().backend.decode(ids_of(data))


def test_an_emoji_appears_with_its_last_byte() -> None:
    stream = byte_tokenizer().stream()
    assert [stream.push(i) for i in ids_of("👍".encode())] == ["", "", "", "👍"]


def test_a_combining_accent_follows_its_letter() -> None:
    stream = byte_tokenizer().stream()
    assert [stream.push(i) for i in ids_of("e\u0301".encode())] == ["e", "", "\u0301"]


def test_a_character_that_never_ends_is_flushed_as_one_replacement() -> None:
    stream = byte_tokenizer().stream()
    assert [stream.push(i) for i in ids_of("日".encode()[:2])] == ["", ""]
    assert stream.flush() == "\ufffd"


def test_a_broken_character_does_not_swallow_the_next_one() -> None:
    stream = byte_tokenizer().stream()
    assert [stream.push(i) for i in ids_of(b"\xe6\x97a")] == ["", "", "\ufffda"]


def test_special_tokens_are_left_out_unless_asked_for() -> None:
    tokenizer = byte_tokenizer()
    ids = [*ids_of(b"a"), 0, *ids_of(b"b")]
    assert tokenizer.decode(ids) == "ab"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "a<|end|>b"
    assert tokenizer.encode("a<|end|>b") == ids


@pytest.mark.parametrize("token", [-1, 257, 10**9])
def test_an_id_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match=f"token {token} is outside the vocabulary of 257"):
        byte_tokenizer().decode([token])


@given(st.text(alphabet="ab c é日\n", max_size=20))
def test_a_sentencepiece_tokenizer_decodes_as_its_own_library_does(text: str) -> None:
    """Llama 2's kind: a low line for each space, one in front of the text, bytes spelled <0xE6> where no token fits."""
    vocabulary = ["<unk>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "a", "b", "c", "\u2581a", "\u2581b"]
    merges = [("\u2581", "a"), ("\u2581", "b")]
    backend = tokenizers.Tokenizer(
        models.BPE({t: i for i, t in enumerate(vocabulary)}, merges, unk_token="<unk>", byte_fallback=True)
    )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer = Tokenizer(backend)
    assert tokenizer.decode(tokenizer.encode(text)) == backend.decode(backend.encode(text).ids) == text
    answer = tokenizer.stream(after_prompt=True)  # as it continues a prompt, its space counts
    pieces = [answer.push(token) for token in tokenizer.encode(text)]
    assert "".join([*pieces, answer.flush()]) == (" " + text if text else "")


# --- folders and GGUF


def test_a_saved_tokenizer_comes_back_with_its_settings(tmp_path: Path) -> None:
    byte_tokenizer().chat_template = "{{ messages[0]['content'] }}{{ eos_token }}"
    byte_tokenizer().save(tmp_path)
    again = Tokenizer.from_folder(tmp_path)
    assert again.encode("añb") == byte_tokenizer().encode("añb")
    assert again.eos_ids == {0}
    assert again.render_chat([{"role": "user", "content": "x"}]) == "x<|end|>"


def test_a_template_in_a_file_of_its_own_goes_first(tmp_path: Path) -> None:
    byte_tokenizer().save(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("from the file")
    assert Tokenizer.from_folder(tmp_path).render_chat([]) == "from the file"


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_missing_or_broken_tokenizer_file_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(WeightsError, match=r"tokenizer\.json: .*expected"):
        Tokenizer.from_folder(tmp_path)


def test_a_gguf_tokenizer_of_another_kind_is_refused_by_name() -> None:
    parts = GgufTokenizer("llama", "default", [], [], [], [], None, None, None, False, None)
    with pytest.raises(WeightsError, match=r"m\.gguf: expected a tokenizer of kind gpt2/smollm, found llama/default"):
        Tokenizer.from_gguf(parts, "m.gguf")


# --- chat templates


def with_template(template: str | None) -> Tokenizer:
    return Tokenizer(byte_tokenizer().backend, chat_template=template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% for i in range(10**9) %}x{% endfor %}",
        "{{ raise_exception('roles must alternate') }}",
        "{% if %}",
        "{{ messages[0]['content'] + 1 }}",
    ],
)
def test_a_template_that_breaks_out_or_refuses_is_an_error(template: str) -> None:
    with pytest.raises(ValueError, match="chat template refuses these messages: "):
        with_template(template).render_chat([{"role": "user", "content": "hi"}])


def test_a_model_without_template_and_a_message_without_content_are_told() -> None:
    with pytest.raises(ValueError, match="no chat template"):
        with_template(None).render_chat([{"role": "user", "content": "hi"}])
    with pytest.raises(ValueError, match=r"message 1: expected 'role' and 'content', found \['role'\]"):
        with_template("x").render_chat([{"role": "user", "content": "hi"}, {"role": "user"}])


# --- SmolLM2


@cache
def smollm2() -> Tokenizer:
    return weights.load_tokenizer(weights.resolve(weights.DEFAULT_MODEL))


@cache
def gguf_parts() -> GgufTokenizer:
    return GgufFile(default_gguf_path()).tokenizer()


GPT2_SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def slow_bpe(text: str) -> list[int]:
    """Byte-pair encoding by its definition: split, then join the pair of lowest rank until none is left."""
    parts = gguf_parts()
    ids = {token: i for i, token in enumerate(parts.tokens)}
    ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(parts.merges)}
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    stand_in = {b: chr(b) for b in printable}
    stand_in |= {b: chr(256 + n) for n, b in enumerate(b for b in range(256) if b not in printable)}
    control = "|".join(regex.escape(parts.tokens[i]) for i in parts.control)
    found = []
    for stretch in regex.split(f"({control})", text):
        if stretch in ids and ids[stretch] in parts.control:
            found.append(ids[stretch])
            continue
        for piece in regex.split(r"(\p{N})", stretch):  # digits stand alone
            for word in GPT2_SPLIT.findall(piece):
                symbols = [stand_in[b] for b in word.encode()]
                while pairs := [pair for pair in pairwise(symbols) if pair in ranks]:
                    left, right = min(pairs, key=ranks.__getitem__)
                    at = list(pairwise(symbols)).index((left, right))
                    symbols[at : at + 2] = [left + right]
                found += [ids[symbol] for symbol in symbols]
    return found


@pytest.mark.model
@pytest.mark.parametrize("text", TRICKY)
def test_smollm2_ids_follow_the_definition_of_byte_pair_encoding(text: str) -> None:
    assert smollm2().encode(text) == slow_bpe(text)


@pytest.mark.model
@pytest.mark.parametrize("text", TRICKY)
def test_transformers_reads_the_converted_tokenizer_alike(text: str) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(weights.resolve(weights.DEFAULT_MODEL))
    ids = smollm2().encode(text)
    assert theirs.encode(text) == ids
    assert theirs.decode(ids) == smollm2().decode(ids, skip_special_tokens=False)


@pytest.mark.model
@settings(max_examples=200, deadline=None)
@given(st.text())
def test_smollm2_gives_back_every_text_that_its_vocabulary_can_write(text: str) -> None:
    """It has no token for six control characters, nor for the first byte of Unicode's empty planes 4 to 11."""
    writable = "".join(c for c in text if c not in "\x04\x06\x13\x14\x16\x1d" and not 0x40000 <= ord(c) < 0xC0000)
    ids = smollm2().encode(writable)
    assert smollm2().decode(ids, skip_special_tokens=False) == writable
    stream = smollm2().stream(skip_special_tokens=False)
    pieces = [stream.push(i) for i in ids]
    assert "".join(pieces) == writable
    assert stream.flush() == ""


@pytest.mark.model
def test_smollm2_chat_template_and_its_ids() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi 👋"}]
    assert smollm2().render_chat(messages) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi 👋<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = smollm2().apply_chat_template(messages)
    assert ids.count(1) == 3  # <|im_start|>
    assert ids.count(2) == 2  # <|im_end|>
    assert smollm2().eos_ids == {0, 2}
    assert not smollm2().render_chat(messages, add_generation_prompt=False).endswith("assistant\n")


@pytest.mark.model
def test_smollm2_adds_its_own_system_message_where_there_is_none() -> None:
    text = smollm2().render_chat([{"role": "user", "content": "Hi"}])
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
