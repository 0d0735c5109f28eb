"""The lessons' diagrams: each function draws one, with numbers from `reference_impl`.

    from interactives import diagrams
    diagrams.memory_hierarchy()      # the last line of a cell

`drawing.py` draws, and the other files say what: `transformer.py` what a model computes, `machine.py` a GPU,
`batches.py` passes and batches, `memory.py` the KV cache, `quantized.py` numbers in few bits, `speculation.py` guesses,
`service.py` a server and several GPUs. A function that takes a moment to import is found here when it is asked for.
"""

from importlib import import_module
from typing import Any

from interactives.diagrams.drawing import Diagram

_HOMES = {
    "layer_path": "transformer",
    "attention_four_tokens": "transformer",
    "grouped_queries": "transformer",
    "growing_cache": "transformer",
    "memory_and_arithmetic": "machine",
    "memory_hierarchy": "machine",
    "two_products": "batches",
    "step_reads": "batches",
    "three_batchings": "batches",
    "slots_and_blocks": "memory",
    "block_table": "memory",
    "copy_on_write": "memory",
    "prefix_tree": "memory",
    "offload_hazard": "memory",
    "number_lines": "quantized",
    "group_bits": "quantized",
    "gptq_columns": "quantized",
    "awq_scaling": "quantized",
    "speculative_round": "speculation",
    "tokens_per_pass": "speculation",
    "acceptance_areas": "speculation",
    "request_timeline": "service",
    "queueing": "service",
    "tensor_parallel": "service",
    "prefill_decode_split": "service",
}
__all__ = ["Diagram", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"no diagram {name!r}; there are: {', '.join(_HOMES)}")
    return getattr(import_module(f"interactives.diagrams.{_HOMES[name]}"), name)
