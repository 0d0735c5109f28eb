"""Reads a GGUF file (llama.cpp's format): shape, weights and tokenizer of a Llama, Qwen2 or Qwen3 model.

A GGUF file is a list of named metadata, then a list of tensors, most of them in small blocks of integers with a scale.
The `gguf` package parses both and dequantizes the blocks. This file translates names to those of the Hugging Face
checkpoints, undoes one permutation, and turns every way in which a file can be broken into an error that names it.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import torch
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.bounds.rope_scaling import LinearScaling, Llama3Scaling, RopeScaling, YarnScaling
from reference_impl.common.errors import WeightsError
from reference_impl.model.rope import rope_frequencies

ARCHITECTURES = ("llama", "qwen2", "qwen3")

# GGUF name without the block number -> Hugging Face name
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_NAMED_TOKENS = ("eos_token", "bos_token", "unknown_token")
_ROPE_FACTORS = "rope_freqs.weight"  # not a weight but llama.cpp's form of Llama 3's RoPE scaling


class StoredType(NamedTuple):
    """How a file stores one tensor: the format's name ("Q4_1", "F32") and what it costs, scales included."""

    format: str
    bits_per_weight: float


@dataclass(frozen=True)
class GgufTokenizer:
    """The tokenizer as a GGUF file holds it: a vocabulary in id order, BPE merges, and special ids.

    `control` ids have no text. `user_defined` ids have text, which is found before any merge.
    """

    kind: str  # "gpt2" is byte-level BPE
    pre: str  # llama.cpp's name for the splitting rule: "smollm"
    tokens: list[str]
    merges: list[str]
    control: list[int]
    user_defined: list[int]
    eos: int | None
    bos: int | None
    unk: int | None
    add_bos: bool
    chat_template: str | None


class GgufFile:
    """An opened GGUF file. Raises WeightsError when it is missing, cut short, or not of an architecture we know."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise WeightsError(f"{self.path}: no such file; expected a GGUF file")
        with self.path.open("rb") as file:
            magic, version = file.read(4), file.read(4)
        if magic != b"GGUF":
            raise WeightsError(f"{self.path}: not a GGUF file; expected it to start with b'GGUF', found {magic!r}")
        if version[:2] == b"\0\0":  # a small number in big-endian order
            raise WeightsError(f"{self.path}: its numbers are big-endian; expected a little-endian GGUF file")
        try:
            self._reader = gguf.GGUFReader(self.path)
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, UnicodeDecodeError) as error:
            size = self.path.stat().st_size
            raise WeightsError(
                f"{self.path}: expected a whole GGUF file; it is damaged or was cut short at {size:,} bytes ({error})"
            ) from None
        self.architecture = str(self._get("general.architecture", "not given"))
        if self.architecture not in ARCHITECTURES:
            raise WeightsError(
                f"{self.path}: expected an architecture of {', '.join(ARCHITECTURES)}; found {self.architecture}"
            )
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    def config(self) -> ModelConfig:
        """The model's shape, from the metadata."""
        n_heads = self._number("attention.head_count")
        d_model = self._number("embedding_length")
        embedding = self._tensors.get("token_embd.weight")
        if embedding is None:
            raise WeightsError(f"{self.path}: expected a tensor token_embd.weight, found none")
        try:
            config = ModelConfig(
                name=str(self._get("general.name", self.path.stem)),
                n_layers=int(self._number("block_count")),
                d_model=int(d_model),
                n_heads=int(n_heads),
                n_kv_heads=int(self._number("attention.head_count_kv", n_heads)),
                head_dim=int(self._number("attention.key_length", d_model // n_heads)),
                d_ff=int(self._number("feed_forward_length")),
                vocab_size=int(embedding.shape[1]),
                tied="output.weight" not in self._tensors,
                rope_theta=float(self._number("rope.freq_base", 10_000.0)),
                # stored as float32: 1e-5 comes back as 9.999999747e-06
                norm_eps=float(f"{self._number('attention.layer_norm_rms_epsilon', 1e-5):.6g}"),
                max_context=int(self._number("context_length")),
                qkv_bias="blk.0.attn_q.bias" in self._tensors,
                out_bias="blk.0.attn_output.bias" in self._tensors,
                qk_norm="blk.0.attn_q_norm.weight" in self._tensors,
            )
        except (ValueError, ZeroDivisionError) as error:
            raise WeightsError(f"{self.path}: its metadata describe no model ({error})") from None
        return self._with_rope_scaling(config)

    def tensors(self, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
        """Each weight under its Hugging Face name, dequantized to float32, one at a time."""
        for name, tensor in self._tensors.items():
            if name == _ROPE_FACTORS:
                continue
            try:
                values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            except (NotImplementedError, ValueError) as error:
                kind = tensor.tensor_type.name
                raise WeightsError(f"{self.path}: cannot read tensor {name} of type {kind} ({error})") from None
            weight = np.array(values, dtype=np.float32)  # a copy: the file is mapped read-only
            if self.architecture == "llama" and re.search(r"attn_[qk]\.(weight|bias)$", name):
                heads = config.n_heads if "attn_q" in name else config.n_kv_heads
                weight = _undo_permutation(weight, heads)
            yield self._hugging_face_name(name), torch.from_numpy(weight)

    def stored_types(self) -> dict[str, StoredType]:
        """How each tensor is stored, under its Hugging Face name."""
        return {
            self._hugging_face_name(name): StoredType(t.tensor_type.name, 8 * int(t.n_bytes) / int(t.n_elements))
            for name, t in self._tensors.items()
            if name != _ROPE_FACTORS
        }

    def tokenizer(self) -> GgufTokenizer:
        """The tokenizer's raw parts, from the metadata."""
        types = self._get("tokenizer.ggml.token_type", [])
        eos, bos, unk = (self._get(f"tokenizer.ggml.{name}_id", None) for name in _NAMED_TOKENS)
        template = self._get("tokenizer.chat_template", None)
        return GgufTokenizer(
            kind=str(self._get("tokenizer.ggml.model", "not given")),
            pre=str(self._get("tokenizer.ggml.pre", "not given")),
            tokens=self._get("tokenizer.ggml.tokens", []),
            merges=self._get("tokenizer.ggml.merges", []),
            control=[i for i, kind in enumerate(types) if kind == gguf.TokenType.CONTROL],
            user_defined=[i for i, kind in enumerate(types) if kind == gguf.TokenType.USER_DEFINED],
            eos=None if eos is None else int(eos),
            bos=None if bos is None else int(bos),
            unk=None if unk is None else int(unk),
            add_bos=bool(self._get("tokenizer.ggml.add_bos_token", False)),
            chat_template=None if template is None else str(template),
        )

    def _get(self, key: str, default: Any) -> Any:
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def _number(self, key: str, default: float | None = None) -> Any:
        full = f"{self.architecture}.{key}"
        value = self._get(full, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WeightsError(f"{self.path}: expected a number under {full}, found {value!r}")
        return value

    def _with_rope_scaling(self, config: ModelConfig) -> ModelConfig:
        """Llama 3's RoPE scaling lies in a file as factors for each frequency, other kinds as metadata."""
        stored = self._tensors.get(_ROPE_FACTORS)
        if stored is None:
            return replace(config, rope_scaling=self._named_scaling())

        factors = torch.from_numpy(np.array(stored.data, dtype=np.float32))
        scaled = replace(config, rope_scaling=Llama3Scaling(float(factors.max()), 1.0, 4.0, 8192))
        expected = rope_frequencies(config) / rope_frequencies(scaled)
        if factors.shape != expected.shape or not torch.allclose(factors, expected, rtol=1e-3):
            raise WeightsError(f"{self.path}: {_ROPE_FACTORS} is not Llama 3's RoPE scaling")
        return scaled

    def _named_scaling(self) -> RopeScaling | None:
        kind = self._get(f"{self.architecture}.rope.scaling.type", "none")
        if kind in ("none", ""):
            return None
        if kind not in ("linear", "yarn"):
            raise WeightsError(f"{self.path}: expected RoPE scaling none, linear, yarn or Llama 3's; found {kind!r}")
        factor = float(self._number("rope.scaling.factor"))
        if kind == "linear":
            return LinearScaling(factor)
        sharper = float(self._number("rope.scaling.attn_factor", 1.0)) * (1 + 0.1 * math.log(factor))
        return YarnScaling(factor, int(self._number("rope.scaling.original_context_length")), sharper)

    def _hugging_face_name(self, name: str) -> str:
        block = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
        if block and block[2] in _BLOCK:
            return f"model.layers.{block[1]}.{_BLOCK[block[2]]}.{block[3]}"
        stem, _, kind = name.rpartition(".")
        if stem in _TOP:
            return f"{_TOP[stem]}.{kind}"
        raise WeightsError(f"{self.path}: a {self.architecture} model has no tensor {name}")


def _undo_permutation(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """Back to the row order of the checkpoints, where RoPE pairs row i of a head with row i + head_dim/2.

    llama.cpp pairs neighbours, so its converter interleaved the two halves of every head's rows in q and k, in weights
    and biases.
    """
    rows, *columns = weight.shape  # a bias has no columns
    pairs = weight.reshape(n_heads, rows // n_heads // 2, 2, *columns)
    return pairs.swapaxes(1, 2).reshape(weight.shape)
