"""Group size against error: what is measured, what is drawn, and what the figure starts from."""

from __future__ import annotations

import numpy as np
import pytest
from figure_logic import call, run
from matplotlib.figure import Figure

from interactives import GroupExplorer
from interactives.group_errors import GroupPoint, draw_errors, measure, sweep


def point(**changes: object) -> GroupPoint:
    values = {
        "group_size": 32,
        "bits": 3,
        "bits_per_weight": 3.5,
        "error": 0.25,
        "expected": 0.2,
        "level_shares": (0.02, 0.03, 0.2, 0.5, 0.2, 0.04, 0.01),
    }
    return GroupPoint(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def weight() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)


def test_a_weight_on_the_grid_loses_nothing_and_lands_on_its_own_level() -> None:
    measured = measure(np.array([[7.0, -7.0, 0.0, 1.0]], dtype=np.float32), group_size=4, bits=4)
    assert measured.error == 0
    assert measured.level_shares == (0.25, 0, 0, 0, 0, 0, 0, 0.25, 0.25, 0, 0, 0, 0, 0, 0.25)


def test_bits_per_weight_counts_a_whole_scale_for_a_last_shorter_group() -> None:
    weight = np.ones((2, 576), dtype=np.float32)
    assert measure(weight, 64).bits_per_weight == pytest.approx(4.25)  # 9 scales of 16 bits for 576 weights
    assert measure(weight, 128).bits_per_weight == pytest.approx(4 + 16 * 5 / 576)  # 4.5 groups need 5 scales


def test_each_group_at_the_beginning_of_the_first_row_has_an_error_of_its_own() -> None:
    row = [7.0, -7.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.5]  # the second group's scale is 1/7: 0.5 is half-way, and becomes 4/7
    measured = measure(np.array([row, row], dtype=np.float32), group_size=4, bits=4)
    lost = 0.5 / 7
    assert measured.strip_errors == pytest.approx((0.0, lost / 3.25**0.5), abs=1e-6)
    assert len(measure(np.ones((1, 600), dtype=np.float32), 128).strip_errors) == 4  # of 512 weights


def test_normal_weights_err_as_predicted(weight: np.ndarray) -> None:
    for measured in sweep(weight, [8, 32, 128]):
        assert measured.error == pytest.approx(measured.expected, rel=0.03)


def test_smaller_groups_cost_more_bits_and_lose_less(weight: np.ndarray) -> None:
    points = sweep(weight, [8, 16, 32, 64, 128, 256])
    costs, errors = [p.bits_per_weight for p in points], [p.error for p in points]
    assert costs == sorted(costs, reverse=True)
    assert errors == sorted(errors)


def test_levels_used_is_the_smallest_number_of_levels_that_hold_nine_in_ten() -> None:
    assert point().levels_used == 3  # .5 + .2 + .2
    assert point(level_shares=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)).levels_used == 1
    assert point(level_shares=(0.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.0)).levels_used == 5


def test_the_curve_names_its_axes_with_units(weight: np.ndarray) -> None:
    axes = Figure().subplots()
    draw_errors(axes, sweep(weight, [8, 32]), guess=(32, 12.0))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("group size (weights per scale)", "relative error (%)")
    assert axes.get_legend_handles_labels()[1] == ["measured", "predicted, normal weights", "your guess"]


def test_the_figure_starts_from_the_points_and_brings_a_table_for_where_no_script_runs(weight: np.ndarray) -> None:
    figure = GroupExplorer(sweep(weight, [32, 8, 128]), start=32)
    state = figure.start_state()
    assert [one["size"] for one in state["points"]] == [8, 32, 128]
    assert state["points"][0]["cost"] == 6.0  # 4 bits and 16 for every 8 weights
    assert all(sum(one["shares"]) == pytest.approx(1, abs=1e-4) for one in state["points"])
    data, _ = figure._repr_mimebundle_()
    assert data["text/html"].count("<tr>") == 1 + 3


def test_the_browser_counts_levels_and_zeros_as_python_does(weight: np.ndarray) -> None:
    points = [*sweep(weight, [8, 64]), point()]
    shares = [{"shares": list(one.level_shares)} for one in points]
    zeros = run([call("groups/logic.js", "toZero", one) for one in shares])
    used = run([call("groups/logic.js", "levelsUsed", one) for one in shares])
    assert zeros == [one.rounded_to_zero for one in points]
    assert used == [one.levels_used for one in points]


def test_a_start_that_was_not_measured_is_refused_with_the_sizes_that_were(weight: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"group size 7 was not measured; measured: \[8, 32\]"):
        GroupExplorer(sweep(weight, [8, 32]), start=7)
