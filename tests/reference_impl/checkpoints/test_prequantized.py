"""GPTQ, AWQ and compressed-tensors folders: written here bit by bit, and equal to their dequantization when read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from model_files import TINY, random_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.folder import save
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama
from reference_impl.quantization.linear import QuantizedLinear

GROUP = 16
SHAPES = {
    "llama": TINY,
    "tied": replace(TINY, tied=True),
    "qwen2": replace(TINY, qkv_bias=True),
    "qwen3": replace(TINY, qk_norm=True),
}


def words(values: list[int], bits: int) -> list[int]:
    """Values of 0 to 2^bits - 1 in words of 32 bits, the first one lowest; as int32."""
    found = []
    for start in range(0, len(values), 32 // bits):
        word = sum(value << (bits * i) for i, value in enumerate(values[start : start + 32 // bits]))
        found.append(word - 2**32 if word >= 2**31 else word)
    return found


def packed(matrix: Tensor, bits: int) -> Tensor:
    """Each row of integers in words."""
    return torch.tensor([words(row, bits) for row in matrix.tolist()], dtype=torch.int32)


def gptq(name: str, q: Tensor, zeros: Tensor, scales: Tensor, bits: int) -> dict[str, Tensor]:
    return {
        f"{name}.qweight": packed(q, bits).T.contiguous(),
        f"{name}.qzeros": packed(zeros.T - 1, bits),
        f"{name}.scales": scales.T.contiguous(),
        f"{name}.g_idx": torch.arange(q.shape[1], dtype=torch.int32) // GROUP,
    }


def awq(name: str, q: Tensor, zeros: Tensor, scales: Tensor, bits: int) -> dict[str, Tensor]:
    def mixed(matrix: Tensor) -> Tensor:
        order = [8 * (i // 8) + [0, 2, 4, 6, 1, 3, 5, 7][i % 8] for i in range(matrix.shape[1])]
        return packed(matrix[:, order], bits)

    return {
        f"{name}.qweight": mixed(q.T),
        f"{name}.qzeros": mixed(zeros.T),
        f"{name}.scales": scales.T.contiguous(),
    }


def compressed(name: str, q: Tensor, zeros: Tensor, scales: Tensor, bits: int) -> dict[str, Tensor]:
    return {
        f"{name}.weight_packed": packed(q, bits),
        f"{name}.weight_scale": scales,
        f"{name}.weight_zero_point": packed(zeros.T, bits).T.contiguous(),
        f"{name}.weight_shape": torch.tensor(q.shape),
    }


GROUPS = {"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": GROUP}}
FORMATS: dict[str, tuple[Callable[..., dict[str, Tensor]], int, dict[str, Any]]] = {
    "gptq, 4 bits": (gptq, 4, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False}),
    "gptq, 8 bits": (gptq, 8, {"quant_method": "gptq", "bits": 8, "group_size": GROUP, "desc_act": False}),
    "awq": (awq, 4, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}),
    "compressed-tensors": (
        compressed,
        4,
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": GROUPS}},
    ),
}


def written(path: Path, name: str, shape: ModelConfig) -> Llama:
    """Writes a folder of the format, and returns the float model with the values that the folder stands for."""
    write, bits, settings = FORMATS[name]
    model = random_model(shape)
    save(path, shape, model.views().items())
    generator = torch.Generator().manual_seed(5)
    tensors: dict[str, Tensor] = {}
    for key, view in model.views().items():
        if not key.endswith("_proj.weight"):
            tensors[key] = view.contiguous()
            continue
        rows, columns = view.shape
        n_groups = -(-columns // GROUP)
        q = torch.randint(0, 2**bits, (rows, columns), generator=generator)
        zeros = torch.randint(1, 2**bits, (rows, n_groups), generator=generator)
        scales = (torch.rand(rows, n_groups, generator=generator) * 0.02 + 0.01).half()
        spread = torch.arange(columns) // GROUP
        view.copy_((q - zeros[:, spread]).float() * scales.float()[:, spread])
        tensors |= write(key.removesuffix(".weight"), q, zeros, scales, bits)
    save_file(tensors, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"quantization_config": settings}))
    return model


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_is_read_into_the_values_of_its_dequantization(tmp_path: Path, name: str, shape: str) -> None:
    expected = written(tmp_path / "m", name, SHAPES[shape])
    model = weights.load_model(tmp_path / "m")
    assert model.config == replace(SHAPES[shape], name="m")
    for mine, theirs in zip(model.layers, expected.layers, strict=True):
        for part in ("wqkv", "wo", "w_gate_up", "w_down"):
            linear = mine.get_submodule(part)
            assert isinstance(linear, QuantizedLinear)
            assert torch.equal(linear.quantized().dequantize(), theirs.get_submodule(part).weight)
    batch = Recompute([1, 2, 3, 4], [7, 8])
    torch.testing.assert_close(model(batch), expected(batch), rtol=2e-3, atol=1e-2)


def rewrite(path: Path, tensors: dict[str, Tensor | None], settings: dict[str, Any]) -> None:
    state = load_file(path / "model.safetensors") | tensors
    save_file({name: value for name, value in state.items() if value is not None}, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    config["quantization_config"] |= settings
    (path / "config.json").write_text(json.dumps(config))


def test_without_zero_points_the_middle_of_the_integers_is_zero(tmp_path: Path) -> None:
    written(tmp_path / "m", "compressed-tensors", TINY)
    state = load_file(tmp_path / "m" / "model.safetensors")
    rewrite(tmp_path / "m", {name: None for name in state if name.endswith("zero_point")}, {})
    weight = weights.load_model(tmp_path / "m").layers[0].wo.quantized()
    assert weight.zeros is None
    first = int(state["model.layers.0.self_attn.o_proj.weight_packed"][0, 0]) & 15
    assert int(weight.q[0, 0]) == first - 8


UP = "model.layers.1.mlp.up_proj"


@pytest.mark.parametrize(
    ("name", "tensors", "settings", "message"),
    [
        ("gptq, 4 bits", {}, {"bits": 3}, r"config\.json: expected bits 2, 4, 8; found 3, which is not built"),
        ("awq", {}, {"version": "gemv"}, r"config\.json: expected version gemm; found 'gemv'"),
        ("compressed-tensors", {}, {"format": "float-quantized"}, "expected format pack-quantized"),
        (
            "gptq, 4 bits",
            {f"{UP}.g_idx": torch.arange(64, dtype=torch.int32) % 4},
            {},
            f"matrix {UP}: its inputs are grouped in another order .desc_act., which is not built",
        ),
        ("gptq, 4 bits", {f"{UP}.scales": None}, {}, rf"expected a tensor {UP}\.scales, found none"),
        ("awq", {f"{UP}.qweight": None, f"{UP}.weight": torch.zeros(96, 64)}, {}, "quantized, or none"),
        ("awq", {"extra": torch.zeros(1)}, {}, "tensor extra has no place in this model"),
        ("awq", {f"{UP}.qweight": torch.zeros(64, 11, dtype=torch.int32)}, {}, f"matrix {UP}: "),
    ],
)
def test_what_is_not_built_or_does_not_fit_is_named(
    tmp_path: Path, name: str, tensors: dict[str, Tensor | None], settings: dict[str, Any], message: str
) -> None:
    written(tmp_path / "m", name, TINY)
    rewrite(tmp_path / "m", tensors, settings)
    with pytest.raises(WeightsError, match=message):
        weights.load_model(tmp_path / "m")
