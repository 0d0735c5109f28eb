"""The command `generate`: a real model answers or continues a prompt, and the text streams to standard output.

    python -m reference_impl generate --prompt "What is the capital of France?" [--model ...] [--draft ngram]

`--ranks N` splits the model over N processes or GPUs of this machine. Under `torchrun --nproc-per-node N -m
reference_impl generate ...` each process that torchrun starts is one rank.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.distributed as dist

from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.checkpoints.weights import DEFAULT_MODEL, load, load_tokenizer, resolve
from reference_impl.commands import model_options
from reference_impl.common import cli
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.generate import generate
from reference_impl.parallel import ranks
from reference_impl.parallel import tensor_parallel as parallel
from reference_impl.speculative.generate import generate_with_drafts
from reference_impl.speculative.speculator import SpeculationStats


def _parser() -> cli.Parser:
    parser = cli.parser("generate", "Continues or answers a prompt with a real model, as a stream of text.")
    parser.add_argument("--prompt", required=True, help="the text to answer or to continue")
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help=f"{DEFAULT_MODEL} (default), course-target, a GGUF file or a folder"
    )
    parser.add_argument("--max-tokens", type=cli.whole_number, default=128, help="the most tokens to make (128)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 (default) takes the likeliest token")
    parser.add_argument("--top-k", type=int, default=0, help="choose among the k likeliest tokens; 0 (default): all")
    parser.add_argument("--top-p", type=float, default=1.0, help="choose among the likeliest that make up p (1)")
    parser.add_argument("--seed", type=int, help="makes a random choice repeatable")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--chat", action="store_true", help="answer the prompt (default for a model with a chat template)"
    )
    kind.add_argument("--raw", action="store_true", help="continue the prompt as it stands")
    model_options.add(parser)
    parser.add_argument("--ranks", type=cli.whole_number, help="split the model over this many processes or GPUs")
    return parser


def main(arguments: list[str]) -> None:
    """`python -m reference_impl generate`"""
    options = _parser().parse_args(arguments)
    params = SamplingParams(options.temperature, options.top_k, options.top_p, options.seed)
    device = model_options.usable_device(options.device)
    if options.ranks is None and not dist.is_torchelastic_launched():
        _answer(device, options, params)
        return
    for option, value in (("--draft", options.draft), ("--weight-bits", options.weight_bits)):
        if value is not None:
            raise ValueError(f"{option} works in one process only, not with --ranks")
    ranks.run_command(options.ranks, _answer, device, options, params)


def _answer(device: torch.device, options: argparse.Namespace, params: SamplingParams) -> None:
    """Writes the answer; where there are several ranks, all of them make it together."""
    dtype = model_options.usable_dtype(options.dtype, device)
    tokenizer = load_tokenizer(resolve(options.model))
    if options.chat or (tokenizer.chat_template is not None and not options.raw):
        prompt = tokenizer.apply_chat_template([{"role": "user", "content": options.prompt}])
    else:
        prompt = tokenizer.encode(options.prompt)
    n_tokens = len(prompt) + options.max_tokens
    if dist.is_initialized():
        model = parallel.load(options.model, dtype, device, max_context=n_tokens).model
        params = replace(params, seed=ranks.same_seed(params.seed))
    else:
        model = load(options.model, dtype, device, n_tokens).model
        model_options.quantize(model, options)
    speculator = model_options.load_speculator(options, model, tokenizer, n_tokens)
    if speculator is None:
        tokens = generate(model, prompt, params, options.max_tokens, tokenizer.eos_ids)
    else:
        tokens = generate_with_drafts(model, prompt, params, options.max_tokens, speculator, tokenizer.eos_ids)
    for piece in stream_text(tokenizer, tokens):
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    if speculator is not None:
        sys.stdout.flush()
        print(summary(speculator.stats), file=sys.stderr)


def stream_text(tokenizer: Tokenizer, tokens: Iterator[int]) -> Iterator[str]:
    """The tokens' text in whole characters, as soon as they are complete."""
    stream = tokenizer.stream(after_prompt=True)
    for token in tokens:
        yield stream.push(token)
    yield stream.flush()


def summary(stats: SpeculationStats) -> str:
    """How many drafted tokens were accepted, in one line."""
    if not stats.n_passes:
        return "drafts: none were needed"
    accepted = f"{sum(stats.accepted)} of {stats.n_drafted} drafted tokens accepted"
    return f"drafts: {accepted}, {stats.tokens_per_pass:.2f} tokens a pass"
