"""Every Triton kernel compiles for a GPU in every dtype: Triton needs none for that, and its interpreter forgives more.

Shapes are those of Llama 3 8B. What the compiled kernels compute, and how fast, only a GPU can show.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
TARGETS = [("bf16", 80), ("bf16", 90), ("fp16", 90), ("fp32", 90)]  # 8.0: A100; 9.0: H100 and H200
SHARED = 99 << 10  # bytes that a program may have on an RTX 4090, the least of all GPUs that are meant


def compiled(kernel: Any, capability: int, pointers: dict[str, str], **constants: Any) -> Any:
    """The kernel for these pointers, 32-bit integers and float scalars, as ptxas leaves it."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    floats = {"scale": "fp32", "eps": "fp32"}
    signature = {
        name: "constexpr" if name in constants else pointers.get(name, floats.get(name, "i32"))
        for name in kernel.arg_names
    }
    return compile(ASTSource(kernel, signature, constexprs=constants), target=GPUTarget("cuda", capability, 32))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize(("dtype", "capability"), TARGETS)
def test_the_small_steps(dtype: str, capability: int) -> None:
    from reference_impl.kernels.gpu import rows as triton_rows

    data = f"*{dtype}"
    norm = dict.fromkeys(("x", "delta", "weight", "sums", "out"), data)
    for add in (False, True):
        compiled(triton_rows._norm, capability, norm, ADD=add, BLOCK=4096)
    compiled(triton_rows._silu_mul, capability, {"x": data, "out": data}, BLOCK=1024)
    turned = dict.fromkeys(("heads", "cos", "sin", "queries", "k_cache", "v_cache"), data) | {"slots": "*i64"}
    compiled(triton_rows._rotate_and_store, capability, turned, HALF=64, BLOCK_SIZE=16, BLOCK=64)


@pytest.mark.parametrize(("dtype", "capability"), TARGETS)
@pytest.mark.parametrize("rows", [16, 64])
def test_attention(rows: int, dtype: str, capability: int) -> None:
    from reference_impl.kernels.gpu import attention as triton_attention

    pointers = dict.fromkeys(("q", "k_cache", "v_cache"), f"*{dtype}")
    pointers |= dict.fromkeys(("block_tables", "query_lens", "context_lens"), "*i32")
    pointers |= {"partial": "*fp32", "log_sum": "*fp32"}
    step = triton_attention.keys_at_once(DTYPES[dtype], 128)
    shapes = {"SEQS": 8, "HEAD_DIM": 128, "BLOCK_SIZE": 16, "SPLITS": 4, "GROUP": 4, "TOKENS": rows // 4, "WIDTH": 128}
    found = compiled(triton_attention._attention, capability, pointers, **shapes, STEP=step, WIDEN=False)
    assert found.metadata.shared <= SHARED
    assert "mma" in found.asm["ptx"] or dtype == "fp32"  # float32 is multiplied exactly


@pytest.mark.parametrize(("dtype", "capability"), TARGETS)
def test_storing_and_merging(dtype: str, capability: int) -> None:
    from reference_impl.kernels.gpu import attention as triton_attention

    stored = dict.fromkeys(("k", "v", "k_cache", "v_cache"), f"*{dtype}") | {"slots": "*i64"}
    compiled(triton_attention._store, capability, stored, HEAD_DIM=128, BLOCK_SIZE=16, WIDTH=128)
    merged = {"partial": "*fp32", "log_sum": "*fp32", "out": f"*{dtype}"}
    compiled(triton_attention._merge, capability, merged, HEAD_DIM=128, SPLITS=4, WIDTH=128)


@pytest.mark.parametrize(("dtype", "capability"), TARGETS)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("x_rows", [1, 16])
def test_quantized_matrices(x_rows: int, bits: int, dtype: str, capability: int) -> None:
    from reference_impl.kernels.gpu import quantized as triton_quantized

    pointers = dict.fromkeys(("x", "bias", "out"), f"*{dtype}") | dict.fromkeys(("scales", "shifts"), "*fp32")
    pointers["codes"] = "*u8" if bits == 4 else "*i8"
    for shifted in (False, True):
        found = compiled(
            triton_quantized._linear,
            capability,
            pointers,
            X_ROWS=x_rows,
            INT4=bits == 4,
            SHIFTED=shifted,
            BIASED=shifted,
            WEIGHT_ROWS=triton_quantized.WEIGHT_ROWS,
            STEP=128,
            WIDEN=False,
        )
        assert ("mma" in found.asm["ptx"]) == (x_rows > 1 and dtype != "fp32")
