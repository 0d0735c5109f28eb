"""What every call of a CPU kernel needs: the compiled kernel for a dtype, and tensors taken apart for it.

A call costs a few microseconds beside the kernel, which matters where a decode step makes two hundred.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from reference_impl.kernels.cpu import attention as cpu_attention
from reference_impl.kernels.cpu import linear as cpu_linear
from reference_impl.kernels.cpu import quantized as cpu_quantized
from reference_impl.kernels.cpu import rows as cpu_rows
from reference_impl.kernels.cpu.threads import Kernel, compiled

SUFFIX = {torch.float32: "f32", torch.bfloat16: "bf16"}


@cache
def kernel(name: str, dtype: torch.dtype) -> Kernel:
    """The compiled kernel for a weight or cache dtype, made when it is first needed."""
    modules = (cpu_linear, cpu_quantized, cpu_attention, cpu_rows)
    names = (name, f"{name}_{SUFFIX[dtype]}")
    return compiled(next(getattr(m, n) for n in reversed(names) for m in modules if hasattr(m, n)))


@cache
def bits(value: float) -> int:
    """The 64 bits of a float as an integer, as which it travels to a kernel."""
    return int(np.float64(value).view(np.int64))


def on_cpu(first: Tensor, *memory: Tensor) -> bool:
    return first.is_cpu and all(tensor.is_cpu and tensor.is_contiguous() for tensor in memory)


def takes_rows(x: Tensor, *weights: Tensor) -> bool:
    """float32 rows that follow each other in memory."""
    return (
        x.dtype is torch.float32
        and all(w.dtype in SUFFIX for w in weights)
        and x.is_contiguous()
        and x.numel() > 0
        and on_cpu(x, *weights)
    )


def float32(x: Tensor) -> Tensor:
    return x if x.dtype is torch.float32 else x.to(torch.float32)


def with_packed_heads(x: Tensor) -> Tensor:
    """[tokens, heads, head_dim] whose heads follow each other in memory; tokens may be further apart."""
    return x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()
