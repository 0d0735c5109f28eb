"""What a GPU can do at best: arithmetic per second, bytes per second, bytes of memory. Every bound divides by one.

The figures are those of the vendors' data sheets: dense bf16 (not the doubled figure "with sparsity") and decimal units
(1 GB is 10^9 bytes). A driver may report other memory, 85.5e9 bytes for an H100 of 80 GB, and a program never gets all
of it. Standard library only.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """peak_flops in FLOP/s (dense bf16), bandwidth in bytes/s, memory in bytes."""

    name: str
    peak_flops: float
    bandwidth: float
    memory_bytes: float

    def __post_init__(self) -> None:
        for field in ("peak_flops", "bandwidth", "memory_bytes"):
            if not 0 < getattr(self, field) < float("inf"):
                raise ValueError(f"{self.name}: {field} must be positive and finite, got {getattr(self, field)}")

    @property
    def ridge(self) -> float:
        """FLOP per byte above which arithmetic, not memory, is the limit (the ridge point of the roofline)."""
        return self.peak_flops / self.bandwidth


GPUS: dict[str, Gpu] = {
    "h100-sxm": Gpu("H100 SXM", 989.5e12, 3.35e12, 80e9),
    "h200": Gpu("H200", 989.5e12, 4.8e12, 141e9),
    "a100-80g": Gpu("A100 80 GB", 312e12, 2.039e12, 80e9),
    "generic-1tb": Gpu("a card with 1 TB/s", 165e12, 1e12, 24e9),  # round numbers, near an RTX 4090
}

H100_L2_BYTES = 50e6  # on the chip, where every read from memory passes (data sheet)
HOST_LINK = 50e9  # bytes/s each way between GPU and CPU: what a PCIe 5 link of 16 lanes, 63 GB/s, carries in practice


def find_gpu(name: str) -> Gpu:
    """The GPU called `name`; ValueError that lists the known ones otherwise."""
    if name not in GPUS:
        raise ValueError(f"unknown GPU {name!r}; known: {', '.join(GPUS)}")
    return GPUS[name]
