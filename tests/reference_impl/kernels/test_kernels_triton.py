"""The Triton kernels equal their twins: in Triton's interpreter on CPU tensors, and on a GPU where there is one.

The interpreter has to be chosen before Triton is imported, so one process of its own runs all cases: this very file.
It shows indexing, masks and arithmetic; races and speed only a GPU can show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from fused_cases import Rows, norm_linear_errors, rotated_attention_errors
from paged_cases import Case, Paged, empty_like, expected_attention, on_device, paged

from reference_impl import kernels
from reference_impl.quantization.rounding import quantize

BF16 = torch.bfloat16
CASES = {
    "one token": Case((1,), (1,)),
    "one sequence, nine heads on three": Case((130,), (1,), n_heads=9, n_kv_heads=3, head_dim=64, block_size=16),
    "bfloat16, eight sequences": Case((9, 8, 1, 6, 5, 4, 3, 20), (1,) * 8, dtype=BF16),
    "partial blocks, odd sizes": Case((5, 17, 70), (2, 17, 1), n_kv_heads=4, head_dim=20, block_size=3),
    "bfloat16, verification of four": Case((5, 70), (4, 4), n_heads=6, n_kv_heads=1, head_dim=8, dtype=BF16),
    "prefill in a contiguous cache": Case((90,), (50,), n_heads=2, head_dim=16, block_size=128),
    "three heads a KV head, chunks": Case((19, 33), (19, 7), n_heads=6, n_kv_heads=2),
}
ROWS = {"rows, odd sizes": Rows(3, 20, 14), "rows, bfloat16": Rows(2, 33, 6, BF16)}
TURNED = {
    name: CASES[name] for name in ("one token", "bfloat16, verification of four", "three heads a KV head, chunks")
}
QUANTIZED = {  # rows of x, out, in, group size, bits, symmetric
    "int8, one row, odd sizes": (1, 20, 70, 32, 8, True),
    "int8, five rows, zero points": (5, 7, 40, 20, 8, False),
    "int4, one row, a partial group": (1, 18, 200, 128, 4, True),
    "int4, eight rows, zero points": (8, 5, 96, 64, 4, False),
    "int8, a group as long as the row, bfloat16": (2, 17, 48, None, 8, True),
}
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def largest_errors(case: Case, device: str) -> dict[str, float]:
    """Of attention against the float64 oracle, and of storing (0 or 1)."""
    made = paged(case)
    got = kernels.paged_attention(made.q.to(device), on_device(made.kv, device), 0, backend="triton").cpu()
    return {
        "attention": (got.double() - expected_attention(case, made)).abs().max().item(),
        "store": float(not stored_right(made, device)),
    }


def stored_right(made: Paged, device: str) -> bool:
    slots = made.kv.slots.clone()
    skipped = int(slots[-1])
    slots[-1] = -1
    kv = on_device(empty_like(made.kv, slots), device)
    kernels.store_kv(made.k.to(device), made.v.to(device), kv, 0, backend="triton")
    for expected, cache in zip(made.kv.layers[0], kv.layers[0], strict=True):
        size = expected.shape[2]
        expected[skipped // size, :, skipped % size] = float("nan")
        if not torch.equal(cache.cpu().nan_to_num(7.0), expected.nan_to_num(7.0)):
            return False
    return True


def quantized_error(
    n: int, n_out: int, n_in: int, group_size: int | None, bits: int, symmetric: bool, device: str, bf16: bool
) -> float:
    """Of the product with bias, relative to the largest value of the twin's."""
    random = torch.Generator().manual_seed(0)
    found = quantize(torch.randn(n_out, n_in, generator=random), bits, group_size, symmetric=symmetric)
    packed = kernels.pack(found.q, found.scales, found.zeros, bits, found.group_size).to(device)
    dtype = BF16 if bf16 else torch.float32
    x, bias = (torch.randn(size, generator=random).to(device, dtype) for size in ((n, n_in), (n_out,)))
    twin = kernels.linear(x.float(), packed, bias.float(), backend="torch")
    got = kernels.linear(x, packed, bias, backend="triton")
    return ((got - twin).abs().max() / twin.abs().max()).item()


def limit(case: Case) -> float:
    return 1e-5 if case.dtype is torch.float32 else 2e-2


@pytest.fixture(scope="module")
def interpreted() -> dict[str, dict[str, float]]:
    here = Path(__file__)
    path = os.pathsep.join(map(str, (here.parents[1] / "helpers", here.parents[3])))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    run = subprocess.run([sys.executable, here], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@needs_triton
@pytest.mark.parametrize("name", CASES)
def test_interpreted_attention_equals_torchs_own_on_whole_sequences(name: str, interpreted: dict) -> None:
    assert interpreted[name]["attention"] < limit(CASES[name])


@needs_triton
@pytest.mark.parametrize("name", CASES)
def test_interpreted_store_fills_its_slots_and_skips_padding(name: str, interpreted: dict) -> None:
    assert interpreted[name]["store"] == 0


@pytest.mark.gpu
@needs_triton
@needs_gpu
@pytest.mark.parametrize("name", CASES)
def test_on_the_gpu_attention_and_store_equal_the_oracle(name: str) -> None:
    errors = largest_errors(CASES[name], "cuda")
    assert errors["attention"] < limit(CASES[name])
    assert errors["store"] == 0


@needs_triton
@pytest.mark.parametrize("name", ROWS)
def test_interpreted_norm_and_gate_equal_the_definition(name: str, interpreted: dict) -> None:
    errors = interpreted[name]
    assert errors["sums"] < (2e-2 if ROWS[name].dtype is BF16 else 1e-6)  # the interpreter cuts off instead of rounding
    assert max(errors["product"], errors["gated"]) < (2e-5 if ROWS[name].dtype is torch.float32 else 5e-2)


@needs_triton
@pytest.mark.parametrize("name", QUANTIZED)
def test_interpreted_products_with_codes_equal_the_twin(name: str, interpreted: dict) -> None:
    assert interpreted[name]["quantized"] < (2e-2 if "bfloat16" in name else 1e-5)


@needs_triton
@pytest.mark.parametrize("name", TURNED)
def test_interpreted_rotation_and_store_equal_one_after_the_other(name: str, interpreted: dict) -> None:
    errors = interpreted[f"{name}, rotated"]
    assert max(errors.values()) < limit(TURNED[name])


@pytest.mark.gpu
@needs_triton
@needs_gpu
def test_on_the_gpu_the_steps_between_the_matrices_equal_their_definitions() -> None:
    for case in (*ROWS.values(), Rows(5, 4096, 64, BF16)):
        assert max(norm_linear_errors(case, "cuda", "triton").values()) < (1e-3 if case.dtype is torch.float32 else 0.1)
    for name, shape in QUANTIZED.items():
        assert quantized_error(*shape, "cuda", "bfloat16" in name) < (2e-2 if "bfloat16" in name else 1e-5)
    for case in TURNED.values():
        assert max(rotated_attention_errors(case, "cuda", "triton").values()) < limit(case)


@pytest.mark.gpu
@needs_triton
@needs_gpu
def test_a_captured_step_follows_new_lengths_and_tables() -> None:
    case = Case((40, 9), (1, 1), head_dim=64, block_size=16)
    made = paged(case)
    q, kv = made.q.cuda(), on_device(made.kv, "cuda")
    kernels.paged_attention(q, kv, 0, backend="triton")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernels.paged_attention(q, kv, 0, backend="triton")
    kv.context_lens.copy_(torch.tensor([23, 4]))
    graph.replay()
    twin = kernels.paged_attention(q, kv, 0, backend="torch")
    torch.testing.assert_close(out, twin, rtol=0, atol=1e-5)


if __name__ == "__main__":
    found = {name: largest_errors(case, "cpu") for name, case in CASES.items()}
    found |= {name: norm_linear_errors(case, "cpu", "triton") for name, case in ROWS.items()}
    found |= {
        name: {"quantized": quantized_error(*case, "cpu", "bfloat16" in name)} for name, case in QUANTIZED.items()
    }
    found |= {f"{name}, rotated": rotated_attention_errors(case, "cpu", "triton") for name, case in TURNED.items()}
    print(json.dumps(found))
