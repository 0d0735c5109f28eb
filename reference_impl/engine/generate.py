"""One request, token by token: a prefill of the prompt, then decode steps of one token each. Nothing is batched here.

This loop is all that an engine does for a single user; `engine` does the same for many at once. `main` is
`python -m reference_impl generate`, which streams the text to standard output. `--ranks N` splits the model over N
processes, or N GPUs, of this machine (`parallel`); under `torchrun --nproc-per-node N -m reference_impl generate ...`
each process that it starts is one rank. `--draft` lets drafts run ahead of the model (`speculative.answer`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
import torch.distributed as dist

from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.checkpoints.weights import DEFAULT_MODEL, load
from reference_impl.commands import weight_bits as quantized
from reference_impl.common import cli
from reference_impl.decoding.sampling import SamplingParams, next_token
from reference_impl.model.llama import Llama
from reference_impl.model.recorded import RecordedPasses
from reference_impl.parallel import ranks
from reference_impl.parallel import tensor_parallel as parallel


def generate(
    model: Llama, prompt: Sequence[int], params: SamplingParams, max_tokens: int, eos_ids: frozenset[int] = frozenset()
) -> Iterator[int]:
    """Yields token ids as they are made: at most max_tokens, ending before a token of eos_ids.

    ValueError if there is no prompt, or if prompt and answer together exceed the model's context.
    """
    require_room(model, prompt, max_tokens)
    return _generate(model, prompt, params, max_tokens, eos_ids)


def require_room(model: Llama, prompt: Sequence[int], max_tokens: int) -> None:
    """ValueError if there is no prompt, or if prompt and answer together exceed the model's context."""
    longest = model.config.max_context
    if not prompt:
        raise ValueError("the prompt has no tokens: there is nothing to continue")
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, got {max_tokens}")
    if len(prompt) + max_tokens > longest:
        raise ValueError(
            f"{len(prompt)} prompt tokens and {max_tokens} new ones exceed {model.config.name}'s context of {longest}"
        )


@torch.inference_mode()
def _generate(
    model: Llama, prompt: Sequence[int], params: SamplingParams, max_tokens: int, eos_ids: frozenset[int]
) -> Iterator[int]:
    cache = ContiguousCache(
        model.config, 1, len(prompt) + max_tokens, dtype=model.embed.dtype, device=model.embed.device
    )
    cache.add("only")
    step = RecordedPasses(model)
    numbers = params.generator()
    new: Sequence[int] = prompt
    for _ in range(max_tokens):
        batch = cache.extend([("only", new)])
        logits = step(batch, batch.last_rows)
        cache.commit(batch)
        token = next_token(logits[0], params, numbers)
        if token in eos_ids:
            return
        yield token
        new = [token]


def stream_text(tokenizer: Tokenizer, tokens: Iterator[int]) -> Iterator[str]:
    """The tokens' text in whole characters, as soon as they are complete."""
    stream = tokenizer.stream(after_prompt=True)
    for token in tokens:
        yield stream.push(token)
    yield stream.flush()


def main(arguments: list[str]) -> None:
    """`python -m reference_impl generate`"""
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
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--chat", action="store_true", help="answer the prompt (default for a model with a chat template)"
    )
    kind.add_argument("--raw", action="store_true", help="continue the prompt as it stands")
    parser.add_argument(
        "--draft", metavar="ngram|MODEL", help="drafts tokens by look-up, or with a smaller model: course-draft"
    )
    parser.add_argument("--draft-tokens", type=cli.whole_number, default=4, help="drafted tokens a round (4)")
    quantized.add(parser)
    parser.add_argument("--ranks", type=cli.whole_number, help="split the model over so many processes or GPUs")
    options = parser.parse_args(arguments)

    params = SamplingParams(options.temperature, options.top_k, options.top_p, options.seed)
    device = usable_device(options.device)
    if options.draft is not None and (options.ranks is not None or dist.is_torchelastic_launched()):
        raise ValueError("--draft works in one process only, not with --ranks")
    if options.weight_bits is not None and (options.ranks is not None or dist.is_torchelastic_launched()):
        raise ValueError("--weight-bits works in one process only, not with --ranks")
    if options.ranks is None and not dist.is_torchelastic_launched():
        _answer(device, options, params)
    else:
        ranks.run_command(options.ranks, _answer, device, options, params)


def _answer(device: torch.device, options: argparse.Namespace, params: SamplingParams) -> None:
    """Writes the answer; where there are several ranks, all of them make it together."""
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    if dist.is_initialized():
        model, tokenizer = parallel.load(options.model, dtype, device)
        params = replace(params, seed=ranks.same_seed(params.seed))
    else:
        model, tokenizer = load(options.model, dtype, device)
        quantized.apply(model, options)
    if options.chat or (tokenizer.chat_template is not None and not options.raw):
        prompt = tokenizer.apply_chat_template([{"role": "user", "content": options.prompt}])
    else:
        prompt = tokenizer.encode(options.prompt)
    if options.draft is not None:
        from reference_impl.speculative import answer

        speculator = answer.speculator(
            options.draft, options.draft_tokens, model, tokenizer, options.max_tokens + len(prompt)
        )
        tokens = answer.generate_with_drafts(model, prompt, params, options.max_tokens, speculator, tokenizer.eos_ids)
    else:
        speculator = None
        tokens = generate(model, prompt, params, options.max_tokens, tokenizer.eos_ids)
    for piece in stream_text(tokenizer, tokens):
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    if speculator is not None:
        sys.stdout.flush()
        print(answer.summary(speculator.stats), file=sys.stderr)


def usable_device(name: str) -> torch.device:
    """The device that `--device` names; ValueError if this machine does not have it."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        if device.type == "cuda" and device.index is not None:
            torch.cuda.set_device(device)  # where Triton launches its kernels
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--device {name}: cannot be used here ({cli.one_line(error)[:120]})") from None
    return device
