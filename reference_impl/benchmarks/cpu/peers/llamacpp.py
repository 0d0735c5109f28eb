"""llama.cpp as a peer: a GGUF file from the same weights, and its server inside this process (package xllamacpp).

The course's GGUF file holds 4-bit values, which llama.cpp computes with as they are. To compare like with like, the
same values are written once more as 32-bit or 16-bit floats (F16, which processors with AVX2 convert in one
instruction).
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from reference_impl.common.files import written_whole

KINDS = {
    "fp32": gguf.LlamaFileType.ALL_F32,
    "bf16": gguf.LlamaFileType.MOSTLY_F16,
    "int8": gguf.LlamaFileType.MOSTLY_Q8_0,
}
SUFFIX = {"fp32": "F32", "bf16": "F16", "int8": "Q8_0"}
MOST_PARALLEL = 32
SPIN = 0.5  # seconds
CONTEXT = 256  # tokens a sequence


def write_floats(source: Path, target: Path, dtype: str) -> Path:
    """`target`: the GGUF file `source` with its weights as floats, or as Q8_0 of those, which is dtype "int8".

    It is made only if it does not exist, and appears whole or not at all.
    """
    if not target.is_file():
        with written_whole(target) as part:
            _write_floats(gguf.GGUFReader(source), part, dtype)
    return target


def _write_floats(reader: gguf.GGUFReader, path: Path, dtype: str) -> None:
    architecture = reader.get_field("general.architecture")
    assert architecture is not None
    writer = gguf.GGUFWriter(path, architecture.contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, items)
    writer.add_file_type(KINDS[dtype])
    for tensor in reader.tensors:
        values = np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        if dtype == "int8" and values.ndim > 1:
            q8_0 = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, q8_0), raw_dtype=q8_0)
        else:
            halved = dtype == "bf16" and values.ndim > 1
            writer.add_tensor(tensor.name, values.astype(np.float16) if halved else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    """llama.cpp's server with a slot for each sequence and as many threads as torch uses."""

    def __init__(self, file: Path) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_parallel = MOST_PARALLEL
        params.n_ctx = MOST_PARALLEL * CONTEXT
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = torch.get_num_threads()
        params.n_gpu_layers = 0
        params.cache_prompt = False
        params.cache_ram_mib = 0
        params.verbosity = 0
        self.server: Any = xllamacpp.Server(params)

    def step_seconds(self, prompts: Sequence[list[int]], n_tokens: int) -> float:
        """The median over slots of the time after the first token, over n − 1 steps, by the server's own timings."""
        replies: list[dict[str, Any]] = [{} for _ in prompts]

        def ask(i: int, prompt: list[int]) -> None:
            replies[i] = self.server.handle_completions(
                {"prompt": prompt, "n_predict": n_tokens, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
            )

        threads = [threading.Thread(target=ask, args=(i, prompt)) for i, prompt in enumerate(prompts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = []
        for reply in replies:
            timings = reply.get("timings") or {}
            if timings.get("predicted_n") != n_tokens:
                raise RuntimeError(f"llama.cpp made {timings.get('predicted_n')} tokens instead of {n_tokens}: {reply}")
            seconds.append(timings["predicted_ms"] / 1e3 / (n_tokens - 1))
        time.sleep(SPIN)  # its threads still spin while they wait for work, which would slow down the next contestant
        return statistics.median(seconds)
