"""Problem set 3: the reference passes every test cell, and each plausible mistake loses its own points.

The test cells, hidden parts included, are run here as they stand with other functions in place of the solutions. That
is quick; the same through nbgrader is in tests/autograder/test_grade.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autograder.release import check_leaks, check_markers
from reference_impl.quantization import groupwise as matrix
from reference_impl.quantization import report

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "exercises/source/ps3_quantization"
CELLS = json.loads((SOURCE / "ps3_quantization.ipynb").read_text(encoding="utf-8"))["cells"]
TESTS = {
    cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
    for cell in CELLS
    if cell["metadata"].get("nbgrader", {}).get("grade") and cell["cell_type"] == "code"
}
IMPORTS = next("".join(cell["source"]) for cell in CELLS if cell["id"] == "imports")

Functions = dict[str, Callable[..., Any]]
REFERENCE: Functions = {
    name: getattr(module, name)
    for module, names in [
        (report, ["parse_quantization_input", "quantize_group", "quantization_report"]),
        (matrix, ["quantize_groupwise", "dequantize_groupwise", "pack_int4", "unpack_int4"]),
    ]
    for name in names
}


def lost(**changed: Callable[..., Any]) -> set[str]:
    """Names of the test cells that fail when these functions take the place of the reference's."""
    failed = set()
    for name, source in TESTS.items():
        names: dict[str, Any] = {**REFERENCE, **changed}
        exec(IMPORTS, names)
        try:
            exec(source, names)
        except Exception:
            failed.add(name)
    return failed


def groupwise(
    weight: Any,
    group_size: int,
    top: float = 127,
    rounding: Callable[..., Any] = np.rint,
    q_type: Any = np.int8,
    scale_type: Any = np.float32,
    last: bool = True,
    safe: bool = True,
    one_scale: bool = False,
    finite: bool = True,
) -> tuple[Any, Any]:
    """A right quantize_groupwise whose every decision can be made wrong."""
    weight = np.asarray(weight, dtype=np.float32)
    if finite and not np.isfinite(weight).all():
        raise ValueError("not finite")
    q_parts, scales = [], []
    for start in range(0, weight.shape[1], group_size):
        part = weight[:, start : start + group_size]
        if not last and part.shape[1] < group_size:
            continue
        peak = np.full((len(part), 1), np.abs(part).max()) if one_scale else np.abs(part).max(axis=1, keepdims=True)
        scale = (peak / np.float32(top)).astype(scale_type)
        with np.errstate(all="ignore"):
            ratio = part / scale.astype(float)
            ratio = np.where(scale > 0, ratio, 0) if safe else ratio
            q_parts.append(rounding(ratio).astype(q_type))
        scales.append(scale)
    return np.hstack(q_parts), np.hstack(scales)


def away_from_zero(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def test_the_reference_passes_every_test_cell() -> None:
    assert lost() == set()


def test_a_right_solution_may_return_torch_tensors() -> None:
    def with_torch(weight: Any, group_size: int) -> tuple[torch.Tensor, torch.Tensor]:
        q, scales = matrix.quantize_groupwise(torch.as_tensor(weight), group_size)
        return torch.as_tensor(q), torch.as_tensor(scales)

    assert lost(quantize_groupwise=with_torch, pack_int4=lambda q: torch.as_tensor(REFERENCE["pack_int4"](q))) == set()


@pytest.mark.parametrize(
    ("wrong", "cells"),
    [
        ({"q_type": np.int64}, {"groupwise-form"}),
        ({"scale_type": np.float64}, {"groupwise-form"}),
        ({"rounding": away_from_zero}, {"groupwise-ties-to-even"}),
        ({"last": False}, {"groupwise-last-group-may-be-shorter", "round-trip-within-half-a-step"}),
        ({"safe": False, "q_type": np.float32}, None),
        ({"finite": False}, {"groupwise-refuses-nan-and-infinity"}),
        ({"one_scale": True}, {"groupwise-values", "round-trip-within-half-a-step"}),
    ],
    ids=["int64", "float64-scales", "half-away", "last-group-dropped", "float-q", "nan-accepted", "one-scale"],
)
def test_a_mistake_in_quantize_groupwise_loses_its_own_points(wrong: dict[str, Any], cells: set[str] | None) -> None:
    missing = lost(quantize_groupwise=lambda weight, group_size: groupwise(weight, group_size, **wrong))
    if cells is None:
        assert "groupwise-form" in missing
    else:
        assert cells <= missing
        allowed = {"groupwise-last-group-may-be-shorter", "groupwise-zeros-and-tiny-weights", "groupwise-ties-to-even"}
        allowed = allowed if "one_scale" in wrong else set()
        if {"one_scale", "rounding"} & wrong.keys():
            allowed.add("groupwise-nearest-for-the-stored-scale")
        assert missing <= cells | allowed


@pytest.mark.parametrize("top", [128, 127.5, 126])
def test_another_largest_integer_loses_the_values(top: float) -> None:
    assert "groupwise-values" in lost(quantize_groupwise=lambda weight, size: groupwise(weight, size, top=top))


def test_a_scale_of_16_bits_loses_the_tiny_weights() -> None:
    def half_scale(weight: Any, group_size: int) -> tuple[Any, Any]:
        return groupwise(weight, group_size, scale_type=np.float16)

    assert {"groupwise-zeros-and-tiny-weights", "groupwise-form"} <= lost(quantize_groupwise=half_scale)


def test_mistakes_in_quantize_group_lose_their_own_points() -> None:
    right = REFERENCE["quantize_group"]

    def half_up(weights: list[float]) -> tuple[float, list[int]]:
        scale = max(map(abs, weights)) / 127
        return scale, [int(np.floor(w / scale + 0.5)) if scale else 0 for w in weights]

    def signed_maximum(weights: list[float]) -> tuple[float, list[int]]:
        scale = max(weights) / 127
        return scale, [round(w / scale) if scale else 0 for w in weights]

    def divides_by_zero(weights: list[float]) -> tuple[float, list[int]]:
        scale = max(map(abs, weights)) / 127
        return scale, [round(w / scale) for w in weights]

    assert lost(quantize_group=half_up) == {"group-ties-to-even"}
    assert "group-scale-and-integers" in lost(quantize_group=signed_maximum)
    assert lost(quantize_group=divides_by_zero) == {"group-of-zeros"}
    assert lost(quantize_group=lambda w: (right(w)[0], [float(n) for n in right(w)[1]])) >= {"group-scale-and-integers"}


def test_mistakes_in_the_report_lose_their_own_points() -> None:
    right = REFERENCE["quantization_report"]

    def from_zero(text: str) -> str:
        lines = right(text).split("\n")
        return "\n".join([f"group {i}:{line.split(':', 1)[1]}" for i, line in enumerate(lines[:-1])] + lines[-1:])

    def mean_of_means(text: str) -> str:
        weights, size = REFERENCE["parse_quantization_input"](text)
        means = []
        for start in range(0, len(weights), size):
            part = weights[start : start + size]
            scale, q = REFERENCE["quantize_group"](part)
            means.append(float(np.mean([abs(w - n * scale) for w, n in zip(part, q, strict=True)])))
        return "\n".join([*right(text).split("\n")[:-1], f"mean error: {np.mean(means):.5f}"])

    def swallows(text: str) -> str:
        try:
            return right(text)
        except ValueError:
            return "error"

    assert lost(quantization_report=from_zero) == {"report-one-group", "report-last-group-may-be-shorter"}
    assert lost(quantization_report=mean_of_means) == {"report-mean-over-all-weights"}
    assert lost(quantization_report=swallows) == {"report-refuses-bad-input"}


def test_mistakes_in_reading_the_input_lose_their_own_points() -> None:
    right = REFERENCE["parse_quantization_input"]

    def careless(text: str) -> tuple[list[float], int]:
        lines = text.split("\n")
        return [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])

    def truncates(text: str) -> tuple[list[float], int]:
        lines = text.split("\n")
        head = "\n".join([lines[0], str(int(float(lines[1]))), *lines[2:]]) if len(lines) > 1 else text
        return right(head)

    assert {"parse-refuses-bad-weights", "parse-refuses-bad-group-size"} <= lost(parse_quantization_input=careless)
    assert lost(parse_quantization_input=truncates) == {"parse-refuses-bad-group-size"}
    assert "parse-accepts" in lost(parse_quantization_input=lambda text: right(text.replace(",", ";")))


def test_mistakes_in_packing_lose_their_own_points() -> None:
    pack, unpack = REFERENCE["pack_int4"], REFERENCE["unpack_int4"]

    def swapped(q: Any) -> Any:
        packed = np.asarray(pack(q))
        return (packed >> 4) | (packed << 4)

    def unsigned(packed: Any, n: int) -> Any:
        return np.asarray(unpack(packed, n)).astype(int) % 16

    def drops_odd(q: Any) -> Any:
        return pack(q[: len(q) // 2 * 2])

    assert {"pack-order", "pack-odd-count", "int4-round-trip"} <= lost(pack_int4=swapped)
    assert lost(pack_int4=drops_odd) == {"pack-odd-count", "int4-round-trip"}
    assert lost(pack_int4=lambda q: np.asarray(pack(q)).astype(np.int64)) == {"pack-order"}
    assert lost(unpack_int4=unsigned) == {"unpack-signs", "int4-round-trip"}


def test_forgetting_the_shorter_group_on_the_way_back_loses_its_own_points() -> None:
    def even_groups(q: Any, scales: Any, group_size: int) -> Any:
        rows, columns = q.shape
        return (np.asarray(q).reshape(rows, -1, group_size) * np.asarray(scales)[:, :, None]).reshape(rows, columns)

    cells = {"dequantize-last-group-may-be-shorter", "round-trip-within-half-a-step"}
    assert lost(dequantize_groupwise=even_groups) == cells


def test_the_notebook_is_ready_for_release() -> None:
    ids = [cell["id"] for cell in CELLS]
    names = [cell["metadata"]["nbgrader"]["grade_id"] for cell in CELLS if "nbgrader" in cell["metadata"]]
    points = [cell["metadata"]["nbgrader"].get("points", 0) for cell in CELLS if "nbgrader" in cell["metadata"]]
    assert len(set(ids)) == len(ids)
    assert len(set(names)) == len(names)
    assert sum(points) == 60
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in CELLS)
    check_markers(SOURCE / "ps3_quantization.ipynb")


def test_the_points_promised_for_each_part_are_the_points_of_its_cells() -> None:
    title = next("".join(cell["source"]) for cell in CELLS if cell["id"] == "title")
    rows = [line.split("|") for line in title.splitlines() if line.startswith("| ") and line[2].isdigit()]
    promised = {f"part-{row[1].strip()}": int(row[3]) for row in rows}
    earned: dict[str, int] = {}
    part = ""
    for cell in CELLS:
        part = cell["id"] if cell["id"].startswith("part-") else part
        earned[part] = earned.get(part, 0) + cell["metadata"].get("nbgrader", {}).get("points", 0)
    assert earned.pop("") == 0
    assert earned == promised


def test_the_released_bundle_holds_no_solution_and_no_hidden_test() -> None:
    check_leaks(SOURCE, ROOT / "exercises/release/ps3_quantization")
    text = (ROOT / "exercises/release/ps3_quantization/ps3_quantization.ipynb").read_text(encoding="utf-8")
    assert "HIDDEN" not in text
    assert "SOLUTION" not in text
    assert "reference_impl" not in text
