"""Problem set 3 agrees with `reference_impl`, and what its text says is true."""

from __future__ import annotations

import numpy as np
import released
import torch
from in_process import assignment

from reference_impl.quantization import gptq as method
from reference_impl.quantization.groupwise import quantize_groupwise

NAME = "ps3_quantization"


def test_the_notebook_is_sound_and_the_bundle_gives_nothing_away() -> None:
    released.check_notebook(NAME, points=60, bonus=10)
    released.check_hints(NAME)
    released.check_bundle(NAME)


def test_the_functions_of_reference_impl_keep_all_points() -> None:
    report = "from reference_impl.commands.quantize import "
    matrix = "from reference_impl.quantization.groupwise import "
    answers = {
        "parse": report + "parse_quantization_input",
        "one-group": report + "quantize_group",
        "report": report + "quantization_report",
        "groupwise": matrix + "quantize_groupwise",
        "back": matrix + "dequantize_groupwise",
        "pack": matrix + "pack_int4",
        "unpack": matrix + "unpack_int4",
    }
    assert assignment(NAME).lost(answers) == {}


def test_the_bonus_is_what_the_engine_does_to_a_layer() -> None:
    """The engine chooses each row's scale, max |w| / 7, and stops at -7: rows in which a weight ends at -8 differ."""
    names: dict[str, object] = {"np": np}
    (answer,) = (cell for cell in assignment(NAME).cells.cells if cell.name == "gptq-layer")
    exec(answer.source, names)
    rng = np.random.default_rng(5)
    weight = torch.tensor(rng.normal(size=(8, 12)))
    inputs = rng.normal(size=(12, 4)) @ rng.normal(size=(4, 60)) + 0.3 * rng.normal(size=(12, 60))
    hessian = inputs @ inputs.T / 60
    damped = hessian + 0.01 * np.diag(hessian).mean() * np.eye(12)
    done = method.gptq(weight, torch.tensor(hessian), bits=4, group_size=None, scale_dtype=torch.float32)
    mine = names["gptq"](weight.numpy(), damped, done.scales[:, 0].double().numpy())  # type: ignore[operator]
    same = (mine > -8).all(axis=1)
    assert same.sum() >= 4
    assert np.array_equal(mine[same], done.q.numpy()[same])
    rounded, _ = quantize_groupwise(weight.numpy().astype(np.float32), None, bits=4)
    assert not np.array_equal(mine, rounded)


def test_the_output_errors_of_the_example_by_hand() -> None:
    hessian = np.array([[2.0, 1.0], [1.0, 2.0]])
    rounding, repaired = np.array([0.4, 0.35]), np.array([0.4, -0.65])
    text = released.text(NAME)
    for taken_away, error in [(rounding, "0.845"), (repaired, "0.645")]:
        assert f"{taken_away @ hessian @ taken_away:.3f}" == error
        assert f"**{error}**" in text


def test_the_costs_of_the_three_group_sizes_of_the_written_part() -> None:
    source = "\n".join("".join(cell["source"]) for cell in released.cells(NAME))
    for group_size, bits in [(32, "4.5"), (128, "4.125"), (1024, "4.016")]:
        assert f"{4 + 16 / group_size:.4g}" == bits
        assert bits in source
