"""Fewer bits a weight on a GPU: is a decode step faster by as much as it reads fewer bytes?

Prediction: a step waits for memory, so it takes its bytes over the bandwidth of a large copy. int8 in groups of 128
with float32 scales has 8.25 bits a weight and int4 has 4.25, about half and a quarter of bfloat16's 16. gpt-fast
published 1.48 and 1.88 times its bfloat16 rate for Llama 2 7B on an A100.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reference_impl.benchmarks.cpu.decode import step_bytes
from reference_impl.benchmarks.harness.result import Save, Section, Target, forget
from reference_impl.model.llama import Llama
from reference_impl.quantization.model import bytes_read_per_step, quantize_model

GROUP_SIZE = 128
BATCHES = (1, 4, 16, 32)
FASTER = {8: 1.75, 4: 2.8}  # times bfloat16's tokens per second at batch 1, in the same process
FOUR_ROWS = 1.3  # most that a step of four rows may take, times the step at batch 1


def quantized(
    bits: int,
    make: Callable[[], Llama],
    seconds: Callable[[Llama, int], float],
    bandwidth: float,
    context: int,
    batches: Sequence[int] = BATCHES,
    save: Save = forget,
) -> Section:
    """int8 or int4 beside the float model. `make` returns a new float model, `seconds` its decode step at a batch size.

    Only one model is in memory at a time. `bandwidth`: bytes per second of a large copy.
    """
    section = Section(
        f"gpu_int{bits}",
        f"Decode with int{bits} matrices (groups of {GROUP_SIZE}), {context} tokens of context, CUDA graphs",
        {
            "weights": "weights",
            "batch": "batch",
            "gigabytes": "GB read",
            "predicted_milliseconds": "predicted ms",
            "milliseconds": "ms/step",
            "tokens_per_second": "token/s",
            "vs_float": "× float",
        },
    )
    taken: dict[tuple[str, int], float] = {}
    for weights in ("float", f"int{bits}"):
        model = make()
        itemsize = model.embed.element_size()
        if weights != "float":
            quantize_model(model, bits, GROUP_SIZE)
        for batch in batches:
            if weights == "float":
                n_bytes = step_bytes(model.config, batch, context, itemsize)
            else:
                n_bytes = bytes_read_per_step(model) + batch * context * model.config.kv_bytes_per_token(itemsize)
            step = taken[weights, batch] = seconds(model, batch)
            section.rows.append(
                {
                    "weights": weights,
                    "batch": batch,
                    "gigabytes": n_bytes / 1e9,
                    "predicted_milliseconds": n_bytes / bandwidth * 1e3,
                    "milliseconds": step * 1e3,
                    "tokens_per_second": batch / step,
                    "vs_float": taken["float", batch] / step,
                }
            )
            save(section)
        del model
    one, faster = taken[f"int{bits}", 1], FASTER[bits]
    section.targets.append(Target(f"int{bits}, batch 1: token/s over float", taken["float", 1] / one, faster))
    four = taken.get((f"int{bits}", 4))
    section.targets.append(
        Target(f"int{bits}, batch 4: step over batch 1's", four and four / one, FOUR_ROWS, at_least=False)
    )
    return section
