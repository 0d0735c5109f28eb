"""The card under test: whether it can be checked at all, its name on the data sheets, and the model that fits it."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass

import torch

from reference_impl.benchmarks.harness.result import Section
from reference_impl.benchmarks.probe import GIB, copy_bandwidth, median_seconds
from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.bounds.hardware import GPUS, Gpu
from reference_impl.common.clock import Clock

DRIVER_NAMES = {"h100-sxm": r"\bH100 80GB HBM3\b", "h200": r"\bH200$", "a100-80g": r"\bA100-SXM4-80GB\b"}
CAPABILITY = (8, 0)  # the first with bfloat16 in its tensor cores
LEAST_MEMORY = 10e9  # bytes: the smallest model, its caches, and the array that is copied
IN_USE = 0.1  # share of the memory; if other processes use more, the card counts as busy
BATCHES = (1, 8, 32, 64)
CONTEXT = 2048  # tokens


@dataclass(frozen=True)
class Ceilings:
    """What this card shows at best: bytes per second read and written by a copy, FLOP per second of a product."""

    copy_bandwidth: float
    matmul_rate: float


def refusal() -> str | None:
    """Why there is no card here that can be checked, in one line; None if there is one. Loads no model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old driver causes warnings; one line is enough
        if not torch.cuda.is_available():
            return "PyTorch finds no CUDA GPU here, so nothing was checked"
    properties = torch.cuda.get_device_properties(0)
    try:
        free, total = torch.cuda.mem_get_info(0)
    except RuntimeError as error:  # the card is in exclusive use, or has no memory left for a context
        return f"{properties.name} is busy or broken: {str(error).splitlines()[0]}"
    return unusable(properties.name, (properties.major, properties.minor), total, free)


def unusable(name: str, capability: tuple[int, int], total: float, free: float) -> str | None:
    """Why this card is too old, too small or too busy; None if it can be used. Memory in bytes."""
    if capability < CAPABILITY:
        needed = ".".join(map(str, CAPABILITY))
        return f"{name} is too old: its compute capability is {capability[0]}.{capability[1]}, and {needed} is needed"
    if total < LEAST_MEMORY:
        return f"{name} is too small: it has {total / 1e9:.1f} GB of memory, and {LEAST_MEMORY / 1e9:.0f} GB are needed"
    if total - free > IN_USE * total:
        return f"{name} is busy: other processes hold {(total - free) / 1e9:.1f} of its {total / 1e9:.1f} GB of memory"
    return None


def describe(clock: Clock = time.perf_counter) -> Section:
    """The card's ceilings. The head of the result has its name and the versions."""
    found = measure_ceilings(torch.device("cuda"), clock)
    sheet = data_sheet(torch.cuda.get_device_properties(0).name)
    return Section(
        "gpu_card",
        "The card: what a large copy and a large bf16 product reach",
        {"what": "what", "measured": "measured", "sheet": "data sheet"},
        [
            {
                "what": "copy, GB/s read and written",
                "measured": found.copy_bandwidth / 1e9,
                "sheet": sheet and sheet.bandwidth / 1e9,
            },
            {
                "what": "bf16 product, TFLOP/s",
                "measured": found.matmul_rate / 1e12,
                "sheet": sheet and sheet.peak_flops / 1e12,
            },
        ],
    )


def measure_ceilings(device: torch.device, clock: Clock, n_bytes: int = 4 * GIB, n: int = 8192) -> Ceilings:
    """A copy within n_bytes and an n x n bfloat16 product of random numbers (constants run faster than real data)."""
    a, b = (torch.randn(n, n, dtype=torch.bfloat16, device=device) for _ in range(2))
    out = torch.empty_like(a)
    seconds = median_seconds(lambda: torch.mm(a, b, out=out), device, clock, 10)
    return Ceilings(copy_bandwidth(device, clock, 10, n_bytes), 2 * n**3 / seconds)


def choose_model(memory_bytes: float) -> ModelConfig:
    """Llama 3 8B where it fits with the caches of the largest batch, else a smaller shape."""
    for name in ("llama-3-8b", "llama-3.2-1b"):
        config = MODELS[name]
        needed = 2 * config.n_params + BATCHES[-1] * CONTEXT * config.kv_bytes_per_token() + 4 * GIB
        if needed < memory_bytes:
            return config
    return MODELS["smollm2-135m"]


def data_sheet(name: str) -> Gpu | None:
    """The GPU in `bounds.hardware` that the driver calls by this name. None for any other, even a close relative."""
    return next((GPUS[key] for key, pattern in DRIVER_NAMES.items() if re.search(pattern, name)), None)
