"""What a backend is: a method for each operation, which declines the inputs that it does not take."""

from __future__ import annotations

from torch import Tensor

from reference_impl.kernels.packed import PackedWeight
from reference_impl.kernels.paged import PagedKV

Matrix = Tensor | PackedWeight  # [out, in]: floats, or int8 or int4 codes


class Backend:
    """One way to compute the operations of `kernels`, whose functions describe arguments and results.

    A method returns None for inputs that it does not take, because of their device, dtype, shape or layout. `kernels`
    then calls the operation's parts, or plain PyTorch. A backend overrides the methods that it has a kernel for.
    """

    name: str

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor | None) -> Tensor | None:
        return None

    def norm_linear(
        self,
        x: Tensor,
        delta: Tensor | None,
        norm: Tensor,
        eps: float,
        weight: Matrix,
        bias: Tensor | None,
        gated: bool,
    ) -> tuple[Tensor, Tensor] | None:
        return None

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor | None:
        return None

    def add_rms_norm(self, x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor] | None:
        return None

    def norm_heads(self, heads: Tensor, q_norm: Tensor, k_norm: Tensor, n_heads: int, eps: float) -> Tensor | None:
        return None

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor | None:
        return None

    def silu_mul(self, x: Tensor) -> Tensor | None:
        return None

    def look_up(self, table: Tensor, index: Tensor) -> Tensor | None:
        return None

    def store_kv(self, k: Tensor, v: Tensor, kv: PagedKV, layer: int) -> bool:
        """Whether it stored them: False where the others return None."""
        return False

    def paged_attention(self, q: Tensor, kv: PagedKV, layer: int) -> Tensor | None:
        return None

    def rotated_attention(
        self, heads: Tensor, n_heads: int, cos: Tensor, sin: Tensor, kv: PagedKV, layer: int
    ) -> Tensor | None:
        return None
