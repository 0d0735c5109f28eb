"""The models that people bring first: their shapes, tokenizers padded as theirs are, and their templates answer a chat.

One layer of random weights in a folder that `transformers` wrote, with a narrower feed-forward block and vocabulary;
the rest is the model's own. The engine must answer as `transformers` does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, trainers

from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request

TEMPLATES = Path(__file__).parent / "chat_templates"
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def rope(theta: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta}


# type, template, hidden size, heads, KV heads, size of a head, and what else the model's config.json says
KNOWN: dict[str, tuple[str, str, int, int, int, int, dict[str, Any]]] = {
    "SmolLM2-135M": ("llama", "smollm2", 576, 9, 3, 64, {"rope_parameters": rope(1e5), "tie_word_embeddings": True}),
    "Llama-3.2-1B": ("llama", "llama-3.2", 2048, 32, 8, 64, {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "Qwen2.5-0.5B": ("qwen2", "qwen2.5", 896, 14, 2, 64, {"rope_parameters": rope(1e6), "tie_word_embeddings": True}),
    "Qwen3-0.6B": ("qwen3", "qwen3", 1024, 16, 8, 128, {"rope_parameters": rope(1e6), "tie_word_embeddings": True}),
    "Mistral-7B-v0.3": (
        *("mistral", "mistral-v0.3", 4096, 32, 8, 128),
        {"rope_parameters": rope(1e6), "sliding_window": None, "tie_word_embeddings": False},
    ),
}


def save_tokenizer(folder: Path, template: str) -> int:
    """Bytes as tokens, with an ending one; returns their number."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=alphabet, special_tokens=["<s>", "</s>"]))
    backend.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").write_text((TEMPLATES / f"{template}.jinja").read_text())
    return backend.get_vocab_size()


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_model_loads_and_answers_a_chat_as_transformers_does(tmp_path: Path, name: str) -> None:
    kind, template, width, n_heads, n_kv_heads, head_dim, settings = KNOWN[name]
    n_tokens = save_tokenizer(tmp_path, template)
    config = transformers.AutoConfig.for_model(
        kind,
        hidden_size=width,
        num_attention_heads=n_heads,
        num_key_value_heads=n_kv_heads,
        head_dim=head_dim,
        intermediate_size=256,
        num_hidden_layers=1,
        vocab_size=n_tokens + 62,  # padded
        max_position_embeddings=32_768,
        **settings,
    )
    theirs = transformers.AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter_name, parameter in theirs.named_parameters():
            parameter.normal_(1.0 if "norm" in parameter_name else 0.0, 0.05, generator=generator)
    theirs.save_pretrained(tmp_path)
    model, tokenizer = weights.load(tmp_path, max_context=1024)
    assert (model.config.max_context, model.config.vocab_size, tokenizer.vocab_size) == (1024, n_tokens + 62, n_tokens)
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "Why?"}])
    with torch.no_grad():
        expected = theirs(torch.tensor([prompt])).logits[0]
    torch.testing.assert_close(model(Recompute(prompt)), expected, rtol=1e-4, atol=1e-3)
    answer = Engine.for_llama(model, EngineConfig(n_blocks=64), tokenizer).run([Request("r", tuple(prompt), 6)])["r"]
    generated = theirs.generate(torch.tensor([prompt]), max_new_tokens=6, min_new_tokens=6, do_sample=False)
    assert list(answer.tokens) == generated[0, len(prompt) :].tolist()
