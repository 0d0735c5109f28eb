"""Text to token ids and back, on the `tokenizers` library, with chat templates and streaming.

A token is a piece of bytes, not of text: a character outside ASCII may be split over several tokens. `Stream` therefore
gathers bytes and returns text only in whole characters. Byte-level BPE: Radford et al. 2019 (GPT-2), section 2.2.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from reference_impl.checkpoints import chat_template
from reference_impl.checkpoints.json_file import read_json
from reference_impl.common.errors import WeightsError

if TYPE_CHECKING:
    from reference_impl.checkpoints.gguf import GgufTokenizer

Message = Mapping[str, str]  # {"role": "user", "content": "..."}
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class Tokenizer:
    """Encodes and decodes for one model.

    `eos_ids` are the tokens that end an answer. `special_tokens` are the texts that a chat template may name:
    bos_token, eos_token, unk_token and so on. `padded_size`: rows of the model's embedding, if it is padded beyond the
    vocabulary; an id of the padding has no text.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        eos_ids: Iterable[int] = (),
        chat_template: str | None = None,
        special_tokens: Mapping[str, str] | None = None,
        padded_size: int = 0,
    ) -> None:
        self.backend = backend
        self.eos_ids = frozenset(eos_ids)
        self.chat_template = chat_template
        self.special_tokens = dict(special_tokens or {})
        self.special_ids = frozenset(i for i, t in backend.get_added_tokens_decoder().items() if t.special)
        self._bytes = _token_bytes(backend)
        self.longest_token = max(map(len, self._bytes), default=0)  # bytes
        self._bytes += [b""] * (padded_size - len(self._bytes))

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size(with_added_tokens=True)

    def has_tokens_of(self, other: Tokenizer) -> bool:
        """Whether every token has the same id in both, so that one model can guess the tokens of the other."""
        return self.backend.get_vocab() == other.backend.get_vocab()

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of `text`. `add_special_tokens` adds what the model wants around a text (Llama 3: a first token).

        A vocabulary may lack bytes that hardly occur (SmolLM2: six control characters and Unicode's empty planes 4 to
        11). They are left out, since the model has never seen them. ValueError for text that is no valid Unicode.
        """
        try:
            # Unlike `encode`, `encode_batch` lets other threads run; a long text takes seconds.
            return list(self.backend.encode_batch([text], add_special_tokens=add_special_tokens)[0].ids)
        except (UnicodeEncodeError, TypeError):
            place = next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")
            raise ValueError(f"the text is not valid Unicode: character {place + 1} is half of a pair") from None

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of `ids`; bytes that form no character become U+FFFD. ValueError for an id out of range."""
        stream = self.stream(skip_special_tokens)
        return "".join([*(stream.push(i) for i in ids), stream.flush()])

    def stream(self, skip_special_tokens: bool = True, *, after_prompt: bool = False) -> Stream:
        """A decoder for tokens that arrive one by one. `after_prompt`: a space before the first one belongs to the
        text.
        """
        return Stream(self, skip_special_tokens, after_prompt)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for. ValueError for an id out of range."""
        if not 0 <= token < len(self._bytes):
            raise ValueError(f"token {token} is outside the vocabulary of {len(self._bytes)}")
        return self._bytes[token]

    def render_chat(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """The conversation as text in the form that the model was trained on. ValueError if it has no template."""
        if self.chat_template is None:
            raise ValueError("this model has no chat template: give it plain text instead")
        for i, message in enumerate(messages):
            if not {"role", "content"} <= message.keys():
                raise ValueError(f"message {i}: expected 'role' and 'content', found {sorted(message)}")
        values = {
            "messages": [dict(message) for message in messages],
            "tools": None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **self.special_tokens,
        }
        return chat_template.render(self.chat_template, values)

    def apply_chat_template(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> list[int]:
        """Token ids of a conversation, ready for the model to answer."""
        return self.encode(self.render_chat(messages, add_generation_prompt), add_special_tokens=False)

    def save(self, folder: Path) -> None:
        """Writes tokenizer.json and tokenizer_config.json, readable by `from_folder` and by transformers."""
        self.backend.save(str(folder / "tokenizer.json"))
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": None,
            "eos_token": None,
            **self.special_tokens,
            "chat_template": self.chat_template,
            "clean_up_tokenization_spaces": False,
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": sorted(self.eos_ids)}))

    @classmethod
    def from_folder(cls, folder: str | Path) -> Tokenizer:
        """Reads a Hugging Face folder: tokenizer.json and, where there are any, its settings and chat template."""
        folder = Path(folder)
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise WeightsError(f"{path}: no such file; expected the model's tokenizer there")
        try:
            backend = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no narrower class
            raise WeightsError(f"{path}: expected a tokenizer of the `tokenizers` library ({error})") from None
        backend.no_truncation()  # truncation and padding were for training
        backend.no_padding()
        settings = read_json(folder / "tokenizer_config.json", missing={})
        generation = read_json(folder / "generation_config.json", missing={})
        model = read_json(folder / "config.json", missing={})
        special = {key: _content(settings.get(key)) for key in SPECIAL_TOKENS if settings.get(key)}
        named = [
            *_ids(generation.get("eos_token_id"), folder / "generation_config.json"),
            *_ids(model.get("eos_token_id"), folder / "config.json"),
            backend.token_to_id(special.get("eos_token", "")),
        ]
        template_file = folder / "chat_template.jinja"
        template = settings.get("chat_template")
        if template_file.is_file():
            template = template_file.read_text(encoding="utf-8")
        elif isinstance(template, list):  # several named ones
            template = {entry["name"]: entry["template"] for entry in template}.get("default")
        return cls(
            backend,
            eos_ids=[i for i in named if i is not None],
            chat_template=template,
            special_tokens=special,
            padded_size=model.get("vocab_size", 0) if isinstance(model.get("vocab_size"), int) else 0,
        )

    @classmethod
    def from_gguf(cls, parts: GgufTokenizer, path: str | Path) -> Tokenizer:
        """Builds the tokenizer that a GGUF file describes; `path` is for the error when it is of an unknown kind."""
        if (parts.kind, parts.pre) != ("gpt2", "smollm"):
            raise WeightsError(
                f"{path}: expected a tokenizer of kind gpt2/smollm, found {parts.kind}/{parts.pre}; "
                "put the model's tokenizer.json beside the file, or use its Hugging Face folder"
            )
        vocabulary = {token: i for i, token in enumerate(parts.tokens)}
        merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in parts.merges)]
        backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        backend.decoder = decoders.ByteLevel()
        for ids, special in ((parts.control, True), (parts.user_defined, False)):
            added = [tokenizers.AddedToken(parts.tokens[i], normalized=False, special=special) for i in ids]
            (backend.add_special_tokens if special else backend.add_tokens)(added)
        if parts.add_bos and parts.bos is not None:
            bos = parts.tokens[parts.bos]
            backend.post_processor = processors.TemplateProcessing(
                single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, parts.bos)]
            )
        named = {"bos_token": parts.bos, "eos_token": parts.eos, "unk_token": parts.unk}
        ends = {parts.eos, backend.token_to_id("<|endoftext|>")} - {None}
        return cls(
            backend,
            eos_ids=[i for i in ends if i is not None],
            chat_template=parts.chat_template,
            special_tokens={key: parts.tokens[i] for key, i in named.items() if i is not None},
        )


class Stream:
    """Decodes token by token. What `push` and `flush` return, joined, is what `decode` gives for all tokens at once.

    `after_prompt`: the text continues that of a prompt, so a space at its beginning stays. SentencePiece writes a
    word's space into its token, and `decode` drops it at the beginning of a text.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool = True, after_prompt: bool = False) -> None:
        self._tokenizer = tokenizer
        self._skip = tokenizer.special_ids if skip_special_tokens else frozenset()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        starts = not after_prompt and tokenizer.backend.decoder is not None
        self._strip = starts and _strips_first_space(tokenizer.backend)

    def push(self, token: int) -> str:
        """The characters that `token` completes; empty while one is still incomplete."""
        piece = self._tokenizer.token_bytes(token)
        if token in self._skip:
            return ""
        if self._strip and piece:
            self._strip = False
            piece = piece.removeprefix(b" ")
        return self._utf8.decode(piece)

    def flush(self) -> str:
        """The rest at the end: U+FFFD if the last character never became complete."""
        return self._utf8.decode(b"", final=True)


def _content(token: Any) -> str:
    """tokenizer_config.json names a token either by its text or by an object that holds it."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token or "")


def _ids(found: Any, path: Path) -> list[int]:
    """`eos_token_id` names no token, one, or several."""
    ids = found if isinstance(found, list) else [] if found is None else [found]
    for value in ids:
        if isinstance(value, bool) or not isinstance(value, int):
            raise WeightsError(f"{path}: expected a token's number as eos_token_id, found {value!r}")
    return ids


def _token_bytes(backend: tokenizers.Tokenizer) -> list[bytes]:
    """The bytes of every token by id."""
    byte_level = '"ByteLevel"' in _decoder_json(backend)
    added = {i: token.content for i, token in backend.get_added_tokens_decoder().items()}
    vocabulary = backend.get_vocab(with_added_tokens=True)
    table = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for text, i in vocabulary.items():
        if i in added:
            table[i] = added[i].encode()
        elif byte_level and all(character in _BYTE_OF for character in text):
            table[i] = bytes(_BYTE_OF[character] for character in text)
        elif len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            table[i] = bytes([int(text[3:5], 16)])
        else:
            table[i] = text.replace("\u2581", " ").encode()  # SentencePiece writes a space as a low line
    return table


def _decoder_json(backend: tokenizers.Tokenizer) -> str:
    return "" if backend.decoder is None else backend.decoder.__getstate__().decode()


def _strips_first_space(backend: tokenizers.Tokenizer) -> bool:
    """Whether the decoder drops a space that encoding puts before the first word, as SentencePiece models do."""
    decoder = _decoder_json(backend)
    prepends = '"Metaspace"' in decoder and '"prepend_scheme":"never"' not in decoder
    return prepends or '"Strip"' in decoder


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte: the byte itself if it prints, else a character from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(rest)}


_BYTE_OF = _byte_alphabet()
