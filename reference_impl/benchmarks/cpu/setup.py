"""What every section is given: the model in the dtypes it asks for, a clock, and how long it may take."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from reference_impl.benchmarks.harness.timing import Run, Samples, interleave
from reference_impl.bounds.config import ModelConfig
from reference_impl.common.clock import Clock
from reference_impl.model.llama import Llama

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass
class Bench:
    """`load(dtype)` returns the model; each dtype is loaded once. `quick`: fewer rounds, shorter answers, to look."""

    load: Callable[[torch.dtype], Llama]
    clock: Clock = time.perf_counter
    quick: bool = False
    rounds: int = 7
    seconds: float = 60.0  # for one comparison; a round that has begun is finished
    pause: float = 0.0  # seconds of rest in each round, if others need the machine too
    peers: tuple[str, ...] = ("transformers", "llama.cpp", "vllm")
    say: Callable[[str], None] = lambda text: None
    encode: Callable[[str], list[int]] = lambda text: list(text.encode())  # the model's tokenizer; bytes for a toy
    _models: dict[str, Llama] = field(default_factory=dict)

    def model(self, dtype: str) -> Llama:
        """dtype "fp32", "bf16", or "int8": matrices in groups of 128."""
        if dtype not in self._models:
            if dtype == "int8":
                from reference_impl.quantization.model import quantize_model

                self._models[dtype] = quantize_model(self.load(torch.float32))
            else:
                self._models[dtype] = self.load(DTYPES[dtype])
        return self._models[dtype]

    @property
    def config(self) -> ModelConfig:
        return self.model("fp32").config

    def compare(self, runs: Mapping[str, Run], warm_up: bool = True) -> Samples:
        """Runs all contestants interleaved."""
        rounds = 2 if self.quick else self.rounds
        if self.pause:
            runs = {**runs, "pause": self._pause}
        return interleave(runs, rounds, self.clock, self.seconds + rounds * self.pause, warm_up)

    def _pause(self) -> float:
        time.sleep(self.pause)
        return self.pause

    def prompts(self, n: int, length: int, seed: int = 0) -> list[list[int]]:
        """Made-up token ids, the same in every run, without the first hundred ids, which include control tokens."""
        numbers = random.Random(seed)
        first = min(100, self.config.vocab_size // 2)
        return [[numbers.randrange(first, self.config.vocab_size) for _ in range(length)] for _ in range(n)]

    def folder(self) -> Path:
        """The default model as a Hugging Face folder, for peers that read it themselves."""
        from reference_impl.checkpoints.fetch import default_model_path

        return default_model_path()

    def gguf(self, dtype: str) -> Path:
        """The default model as a GGUF file of floats, written once beside the model."""
        from reference_impl.benchmarks.cpu.peers.llamacpp import SUFFIX, write_floats
        from reference_impl.checkpoints.fetch import default_gguf_path

        source = default_gguf_path()
        return write_floats(source, source.with_name(f"SmolLM2-135M-Instruct.{SUFFIX[dtype]}.gguf"), dtype)
