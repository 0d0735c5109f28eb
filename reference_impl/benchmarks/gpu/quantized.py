"""Fewer bits a weight on a GPU: does a decode step at batch 1 become as much faster as it reads fewer bytes?

Prediction: a step that waits for memory takes its bytes over the bandwidth of a large copy. int8 in groups of
128 with float32 scales has 8.25 bits a weight, int4 4.25, so about half and about a quarter of bfloat16's. gpt-fast
published 1.48 and 1.88 times its bfloat16 rate for Llama 2 7B on an A100.
"""

from __future__ import annotations

from collections.abc import Callable

from reference_impl.benchmarks.cpu.decode import step_bytes
from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.model.llama import Llama
from reference_impl.quantization.model import bytes_read_per_step, quantize_model

GROUP_SIZE = 128
FASTER = {8: 1.75, 4: 2.8}  # times bfloat16's tokens per second in the same run


def quantized(make: Callable[[], Llama], seconds: Callable[[Llama], float], bandwidth: float, context: int) -> Section:
    """int8 and int4 beside the float model at batch 1. `make`: a new float model; `seconds`: of its decode step.

    Only one model is in memory at a time. `bandwidth`: bytes per second of a large copy.
    """
    section = Section(
        "gpu_quantized",
        f"Decode with quantized matrices (groups of {GROUP_SIZE}), batch 1, {context} tokens of context, CUDA graphs",
        {
            "weights": "weights",
            "gigabytes": "GB read",
            "predicted_milliseconds": "predicted ms",
            "milliseconds": "ms/step",
            "tokens_per_second": "token/s",
            "vs_float": "× float",
        },
    )
    base = 0.0
    for bits in (None, *FASTER):
        model = make()
        itemsize = model.embed.element_size()
        if bits is None:
            n_bytes = step_bytes(model.config, 1, context, itemsize)
        else:
            quantize_model(model, bits, GROUP_SIZE)
            n_bytes = bytes_read_per_step(model) + context * model.config.kv_bytes_per_token(itemsize)
        taken = seconds(model)
        base = base or taken
        section.rows.append(
            {
                "weights": "float" if bits is None else f"int{bits}",
                "gigabytes": n_bytes / 1e9,
                "predicted_milliseconds": n_bytes / bandwidth * 1e3,
                "milliseconds": taken * 1e3,
                "tokens_per_second": 1 / taken,
                "vs_float": base / taken,
            }
        )
        if bits is not None:
            section.targets.append(Target(f"int{bits}, batch 1: token/s over float", base / taken, FASTER[bits]))
        del model
    return section
