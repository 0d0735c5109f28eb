"""Inputs for the kernels that do several of the decoder's steps at once, and how far each backend is from the twins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from paged_cases import Case, on_device, paged
from torch import Tensor

from reference_impl import kernels

Error = float


@dataclass(frozen=True)
class Rows:
    """x [n, width] float32 or of another dtype; the matrix has `n_out` rows."""

    n: int
    width: int
    n_out: int
    dtype: torch.dtype = torch.float32


def normal(random: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=random)


def norm_linear_errors(case: Rows, device: str, backend: str) -> dict[str, Error]:
    """Largest differences from the definition in float64: of sums, product with bias, gated product."""
    random = torch.Generator().manual_seed(0)
    x, delta = (normal(random, case.n, case.width).to(case.dtype).to(device) for _ in range(2))
    norm = (normal(random, case.width) + 1).to(case.dtype).to(device)
    weight = (normal(random, case.n_out, case.width) / case.width**0.5).to(case.dtype).to(device)
    bias = normal(random, case.n_out).to(case.dtype).to(device)
    sums = (x + delta).double()
    rows = sums / (sums.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.double()
    product = rows @ weight.double().T
    gate, up = product.chunk(2, dim=-1)
    expected = {"sums": sums, "product": product + bias.double(), "gated": gate / (1 + torch.exp(-gate)) * up}
    found_sums, found = kernels.norm_linear(x, delta, norm, 1e-5, weight, bias, backend=backend)
    gated = kernels.norm_linear(x, delta, norm, 1e-5, weight, gated=True, backend=backend)[1]
    got = {"sums": found_sums, "product": found, "gated": gated}
    return {name: (got[name].double() - expected[name]).abs().max().item() for name in expected}


def rotated_attention_errors(case: Case, device: str, backend: str) -> dict[str, Error]:
    """Largest differences from the twin: of what attention gives, and of the caches afterwards."""
    made = paged(case)
    random = torch.Generator().manual_seed(1)
    n = sum(case.new)
    heads = normal(random, n, case.n_heads + 2 * case.n_kv_heads, case.head_dim).to(case.dtype)
    angle = torch.rand(n, 1, case.head_dim // 2, generator=random) * 6
    cos, sin = torch.cat((angle.cos(),) * 2, -1), torch.cat((-angle.sin(), angle.sin()), -1)
    ends = torch.tensor(case.contexts).cumsum(0).tolist()
    own = torch.cat([made.kv.slots[end - new : end] for end, new in zip(ends, case.new, strict=True)])
    out, caches = [], []
    for where, by in (("cpu", "torch"), (device, backend)):
        kv = on_device(replace(made.kv, slots=own), where)
        arguments = (heads.to(where), case.n_heads, cos.to(where, heads.dtype), sin.to(where, heads.dtype))
        out.append(kernels.rotated_attention(*arguments, kv, 0, backend=by).cpu())
        caches.append(torch.stack(kv.layers[0]).cpu().nan_to_num(7.0))
    return {
        "attention": (out[0].double() - out[1].double()).abs().max().item(),
        "cache": (caches[0].double() - caches[1].double()).abs().max().item(),
    }
