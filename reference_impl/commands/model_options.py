"""The options that `generate` and `serve` share: the device, quantized weights, and drafts for speculative decoding."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from reference_impl.common import cli

if TYPE_CHECKING:
    import torch

    from reference_impl.checkpoints.tokenizer import Tokenizer
    from reference_impl.model.llama import Llama
    from reference_impl.speculative.speculator import Speculator

DRAFT_BLOCK_SIZE = 16  # tokens in a block of the draft model's KV cache


def add(parser: argparse.ArgumentParser) -> None:
    """Adds --dtype, --weight-bits, --group-size, --draft and --draft-tokens."""
    parser.add_argument(
        "--dtype", choices=["auto", "float32", "bfloat16", "float16"], default="auto", help="(float32; GPU: bfloat16)"
    )
    parser.add_argument("--weight-bits", type=int, choices=[8, 4], help="quantize the matrices by rounding (no)")
    parser.add_argument("--group-size", type=cli.whole_number, default=128, help="weights that share a scale (128)")
    parser.add_argument(
        "--draft", metavar="ngram|MODEL", help="drafts tokens by look-up, or with a smaller model: course-draft"
    )
    parser.add_argument("--draft-tokens", type=cli.whole_number, default=4, help="drafted tokens a round (4)")


def usable_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype that `--dtype` names; "auto" is float32 on a CPU and bfloat16 on a GPU.

    ValueError for float16 on a CPU, for which there are no kernels.
    """
    import torch

    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name == "float16" and device.type == "cpu":
        raise ValueError("--dtype float16: works on a GPU only; a CPU takes float32 and bfloat16")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def usable_device(name: str | None) -> torch.device:
    """The device that `--device` names; without a name the GPU, if there is one, else the CPU.

    ValueError if this machine does not have the named device.
    """
    import torch

    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        if device.type == "cuda" and device.index is not None:
            torch.cuda.set_device(device)  # Triton launches its kernels on the current device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--device {name}: cannot be used here ({cli.one_line(error)[:120]})") from None
    return device


def quantize(model: Llama, options: argparse.Namespace) -> Llama:
    """The model, quantized in place if --weight-bits asks for it. ValueError if it is quantized already."""
    if options.weight_bits is None:
        return model
    from reference_impl.quantization.model import quantize_model

    return quantize_model(model, options.weight_bits, options.group_size)


def load_speculator(
    options: argparse.Namespace, model: Llama, tokenizer: Tokenizer, n_tokens: int
) -> Speculator | None:
    """The speculator that --draft asks for: n-gram look-up, or the model of that name, file or folder.

    n_tokens: tokens that the draft model's KV cache must hold. ValueError if the two models do not share a tokenizer.
    """
    if options.draft is None:
        return None
    from reference_impl.checkpoints.weights import load
    from reference_impl.speculative.draft_model import ModelDraft
    from reference_impl.speculative.ngram import NgramDraft
    from reference_impl.speculative.speculator import DraftLength, Speculator

    length = DraftLength(options.draft_tokens)
    if options.draft == "ngram":
        return Speculator(NgramDraft(), length)
    draft, its_tokenizer = load(options.draft, model.embed.dtype, model.embed.device, n_tokens)
    if not its_tokenizer.has_tokens_of(tokenizer):
        raise ValueError(
            f"--draft {options.draft}: its tokenizer is not the model's, so its tokens mean something else"
        )
    n_blocks = -(-n_tokens // DRAFT_BLOCK_SIZE)
    drafting = ModelDraft.for_llama(draft, n_blocks, DRAFT_BLOCK_SIZE, vocab_size=model.config.vocab_size)
    return Speculator(drafting, length)
