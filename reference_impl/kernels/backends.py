"""Which implementation of a kernel runs: by device, by what is installed, or as the caller or the environment says."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

from reference_impl.kernels import reference

_MODULES = {"cpu": "reference_impl.kernels.cpu", "triton": "reference_impl.kernels.gpu"}


def pick(x: Tensor, weight: Tensor, backend: str | None) -> ModuleType:
    """The implementation for these tensors' device; the twin where a gradient is wanted, or fast ones are off."""
    if backend is not None:
        return load(backend, True)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return reference
    return default_for(x.device.type)


@cache
def default_for(device_type: str) -> ModuleType:
    wanted = os.environ.get("LLM_COURSE_KERNELS", "auto")
    if wanted not in ("auto", "torch"):
        raise ValueError(f"LLM_COURSE_KERNELS is {wanted!r}; it can be 'auto' or 'torch'")
    names = {"cpu": "cpu", "cuda": "triton"}
    return load(names[device_type], False) if wanted == "auto" and device_type in names else reference


@cache
def load(backend: str, required: bool) -> ModuleType:
    """The module of a backend; where it is not installed, the twin, unless it is `required`."""
    if backend == "torch":
        return reference
    if backend not in _MODULES:
        raise ValueError(f"unknown kernel backend {backend!r}; known: 'torch', 'cpu', 'triton'")
    try:
        return import_module(_MODULES[backend])
    except ImportError as error:
        if required:
            raise ValueError(f"kernel backend {backend!r} is not installed: {error}") from error
        return reference


def refuse_if_asked(backend: str | None, name: str, x: Tensor, weight: Tensor) -> ModuleType:
    if backend not in (None, "torch"):
        raise ValueError(
            f"{name}: kernel backend {backend!r} does not take {list(x.shape)} {x.dtype} on {x.device} with "
            f"{list(weight.shape)} {weight.dtype} on {weight.device}"
        )
    return reference
