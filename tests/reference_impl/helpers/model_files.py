"""Small model files for the tests of loading, written with the `gguf` package and with transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, trainers
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.checkpoints.folder import save
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.model.llama import Llama

TINY = ModelConfig("tiny", 2, 64, 4, 2, 16, 96, 50, max_context=32)

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def random_model(config: ModelConfig = TINY, dtype: torch.dtype = torch.float32) -> Llama:
    """Weights that differ everywhere, norms included, so that no swapped tensor goes unseen."""
    model = Llama(config, dtype)
    generator = torch.Generator().manual_seed(11)
    for name, view in model.views().items():
        view.normal_(1.0 if "norm" in name else 0.0, 0.2, generator=generator)
    return model


def llama_cpp_order(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """llama.cpp's order of q and k: in each head, row i of the first half goes to 2i, of the second half to 2i+1."""
    rows = weight.shape[0] // n_heads
    order = [head * rows + half * rows // 2 + i for head in range(n_heads) for i in range(rows // 2) for half in (0, 1)]
    return weight[order]


def write_gguf(
    path: Path,
    model: Llama,
    architecture: str = "llama",
    quantized: gguf.GGMLQuantizationType | None = None,
    leave_out: str = "",
    extra: dict[str, Tensor] | None = None,
) -> Path:
    """Writes the model as llama.cpp's converter would; matrices in the block format `quantized` if one is given."""
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("a tiny one")
    writer.add_context_length(config.max_context)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.n_layers)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    writer.add_key_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    for name, view in model.views().items():
        stem, _, kind = name.rpartition(".")
        if stem.startswith("model.layers."):
            _, _, layer, part = stem.split(".", 3)
            renamed = f"blk.{layer}.{GGUF_NAMES[part]}.{kind}"
        else:
            renamed = f"{GGUF_NAMES[stem]}.{kind}"
        values = view.float().numpy().copy()
        if architecture == "llama" and renamed.endswith(("attn_q.weight", "attn_k.weight")):
            values = llama_cpp_order(values, config.n_heads if "attn_q" in renamed else config.n_kv_heads)
        if renamed == leave_out:
            continue
        if quantized is not None and values.ndim == 2:
            writer.add_tensor(renamed, gguf.quants.quantize(values, quantized), raw_dtype=quantized)
        else:
            writer.add_tensor(renamed, values)
    for name, value in (extra or {}).items():
        writer.add_tensor(name, value.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"


def save_letters(path: Path, letters: str = LETTERS) -> Path:
    """Saves a folder with a model of random weights, whose answers are noise, and one token for each letter."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=list(letters), vocab_size=len(letters)))
    config = replace(TINY, vocab_size=len(letters))
    save(path, config, random_model(config).views().items(), Tokenizer(backend))
    return path
