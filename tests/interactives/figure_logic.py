"""Asks the figures' JavaScript: many cases, one Node process."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

from node_tools import find_node

from interactives.generate import _model
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import GPUS


def model(name: str) -> dict[str, Any]:
    return _model(MODELS[name])


def gpu(name: str) -> dict[str, float]:
    found = GPUS[name]
    return {"peak": found.peak_flops, "bandwidth": found.bandwidth, "memory": found.memory_bytes}


def call(module: str, name: str, *args: Any, then: list | None = None) -> dict[str, Any]:
    """One case: a function of src/MODULE on JSON-like arguments; {"numbers": [...]} becomes a source of numbers."""
    return {"module": module, "name": name, "args": list(args), "then": then}


def run(cases: list[dict[str, Any]]) -> list[Any]:
    """The results in order, infinities as floats. Raises AssertionError with Node's words if one fails."""
    command = [find_node(), str(Path(__file__).parent / "run_logic.mjs")]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [_finite(result) for result in json.loads(done.stdout)]


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value
