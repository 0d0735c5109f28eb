"""The two optimizers of the recipe: Muon for the hidden matrices, AdamW for embeddings and norms.

Muon steps in the direction of the momentum with all its singular values set to about 1, so rare directions learn as
fast as common ones. The Newton-Schulz iteration computes that with matrix products alone. It runs in float32, since
bfloat16 is slow on a CPU. Matrices of one shape share their products. Jordan et al. 2024, "Muon: An optimizer for
hidden layers in neural networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan et al.: steepest at 0; singular values end between 0.7 and 1.2


def orthogonalize(matrices: Tensor, n_steps: int = 5) -> Tensor:
    """U Vᵀ of each of the matrices [n, rows, columns] = U S Vᵀ, approximately: singular values between 0.7 and 1.2."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(n_steps):
        gram = x @ x.transpose(1, 2)
        x = a * x + torch.baddbmm(gram, gram, gram, beta=b, alpha=c) @ x
    return x.transpose(1, 2) if tall else x


class Muon:
    """Steps each matrix [rows, columns] along its orthogonalized Nesterov momentum.

    `parts[i]` are the rows at which a fused matrix is cut: each part is orthogonalized by itself.
    """

    def __init__(
        self, matrices: Sequence[Tensor], parts: Sequence[Sequence[int]], momentum: float = 0.95, n_steps: int = 5
    ) -> None:
        self.matrices = list(matrices)
        self.parts = [list(p) for p in parts]
        self.momentum = momentum
        self.n_steps = n_steps
        self.buffers = [torch.zeros_like(m) for m in self.matrices]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """One step from the gradients that the matrices hold."""
        alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
        for matrix, sizes, buffer in zip(self.matrices, self.parts, self.buffers, strict=True):
            assert matrix.grad is not None
            buffer.mul_(self.momentum).add_(matrix.grad)
            direction = matrix.grad.add(buffer, alpha=self.momentum)
            for part, its_direction in zip(matrix.split(sizes), direction.split(sizes), strict=True):
                alike.setdefault(tuple(part.shape), []).append((part, its_direction))
        for (rows, columns), pairs in alike.items():
            update = orthogonalize(torch.stack([direction for _, direction in pairs]), self.n_steps)
            scale = lr * max(1.0, rows / columns) ** 0.5
            for (part, _), direction in zip(pairs, update, strict=True):
                part.sub_(direction, alpha=scale)

    def state_dict(self) -> dict[str, Any]:
        return {"buffers": self.buffers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for buffer, saved in zip(self.buffers, state["buffers"], strict=True):
            buffer.copy_(saved)
