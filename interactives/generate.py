"""The constants of the browser's figures, written from `reference_impl`: nobody types a bandwidth into JavaScript.

    python -m interactives.generate      # interactives/src/generated/constants.js

Standard library only.
"""

import json
import random
from pathlib import Path
from typing import Any

from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.bounds.hardware import GPUS

TARGET = Path(__file__).parent / "src" / "generated" / "constants.js"

MODEL_NAMES = {
    "smollm2-135m": "SmolLM2 135M",
    "qwen2.5-0.5b": "Qwen2.5 0.5B",
    "qwen3-0.6b": "Qwen3 0.6B",
    "llama-3.2-1b": "Llama 3.2 1B",
    "qwen3-4b": "Qwen3 4B",
    "llama-2-7b": "Llama 2 7B",
    "llama-3-8b": "Llama 3 8B",
    "llama-2-13b": "Llama 2 13B",
    "llama-3-70b": "Llama 3 70B",
}


def gpus() -> dict[str, Any]:
    """peak in FLOP/s, bandwidth in bytes/s, memory in bytes."""
    return {
        key: {
            "name": gpu.name,
            "peak": int(gpu.peak_flops),
            "bandwidth": int(gpu.bandwidth),
            "memory": int(gpu.memory_bytes),
        }
        for key, gpu in GPUS.items()
    }


def _model(config: ModelConfig) -> dict[str, Any]:
    return {
        "name": MODEL_NAMES.get(config.name, config.name),
        "params": config.n_params,
        "layers": config.n_layers,
        "heads": config.n_heads,
        "kvHeads": config.n_kv_heads,
        "headDim": config.head_dim,
        "maxContext": config.max_context,
    }


def weights(n: int = 64, seed: int = 5) -> list[float]:
    """`n` weights from a bell curve, three decimals each: what the quantization figure starts with."""
    numbers = random.Random(seed)
    return [round(numbers.gauss(0.0, 0.5), 3) for _ in range(n)]


def workload(seed: int, n: int = 10) -> list[dict[str, int]]:
    """Requests of the batching timeline: arrival in milliseconds, prompt and answer in tokens. Short ones and long."""
    numbers = random.Random(f"timeline {seed}")
    at, requests = 0.0, []
    for _ in range(n):
        long_prompt = numbers.random() < 0.3
        prompt = numbers.randint(1500, 4000) if long_prompt else numbers.randint(60, 500)
        requests.append({"arrival": round(at), "prompt": prompt, "answer": numbers.randint(4, 40)})
        at += numbers.expovariate(1 / 30)
    return requests


def constants() -> str:
    """The text of the generated module."""
    tables = {
        "GPUS": gpus(),
        "MODELS": {name: _model(config) for name, config in MODELS.items()},
        "WEIGHTS": weights(),
        "WORKLOADS": [workload(seed) for seed in range(8)],
    }
    head = "// Made by `python -m interactives.generate` from reference_impl. Not to be edited.\n"
    lines = (f"export const {name} = {json.dumps(table, ensure_ascii=False)};\n" for name, table in tables.items())
    return head + "".join(lines)


def write() -> None:
    """Write the generated module."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(constants(), encoding="utf-8")


if __name__ == "__main__":
    write()
