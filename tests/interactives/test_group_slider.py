"""The group-size slider: what it counts, what it says, and what it leaves on a page without a kernel."""

from __future__ import annotations

import re

import numpy as np
import pytest

from interactives.group_slider import WIDGET_MIME, GroupExplorer, GroupPoint, draw, measure, sentence, sweep


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


@pytest.fixture(scope="module")
def explorer(weight: np.ndarray) -> GroupExplorer:
    return GroupExplorer(sweep(weight, [8, 32, 128]), start=32)


def test_a_weight_on_the_grid_loses_nothing_and_lands_on_its_own_level() -> None:
    measured = measure(np.array([[7.0, -7.0, 0.0, 1.0]], dtype=np.float32), group_size=4, bits=4)
    assert measured.error == 0
    assert measured.level_shares == (0.25, 0, 0, 0, 0, 0, 0, 0.25, 0.25, 0, 0, 0, 0, 0, 0.25)


def test_bits_per_weight_counts_a_whole_scale_for_a_last_shorter_group() -> None:
    weight = np.ones((2, 576), dtype=np.float32)
    assert measure(weight, 64).bits_per_weight == pytest.approx(4.25)  # 9 scales of 16 bits for 576 weights
    assert measure(weight, 128).bits_per_weight == pytest.approx(4 + 16 * 5 / 576)  # 4.5 groups need 5 scales


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


def test_the_sentence_says_what_the_picture_says() -> None:
    assert sentence(point()) == (
        "Groups of 32: 3.50 bits per weight, error 25.0% (normal weights: 20.0%). "
        "50% of the weights become 0, and 90% of them use 3 of the 7 levels."
    )


def test_the_picture_names_its_axes_with_units_and_fits_a_page_700_pixels_wide(explorer: GroupExplorer) -> None:
    figure = draw(list(explorer.points.values()), explorer.points[32])
    left, right = figure.axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("group size (weights per scale)", "relative error (%)")
    assert (right.get_xlabel(), right.get_ylabel()) == ("level (4-bit integer)", "weights on it (%)")
    assert figure.get_size_inches()[0] * 100 == 700


def test_moving_the_slider_shows_the_page_of_the_new_group_size(explorer: GroupExplorer) -> None:
    slider, view = explorer.widget().children
    assert slider.value == 32
    assert list(slider.options) == [8, 32, 128]
    slider.value = 128
    assert view.value == explorer.page(128)
    assert "Groups of 128:" in view.value


def test_a_page_without_a_kernel_finds_the_figure_its_alt_text_and_the_table_in_the_same_output(
    explorer: GroupExplorer,
) -> None:
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {WIDGET_MIME, "text/html", "text/plain"}
    assert re.search(r'<img alt="Groups of 32: [^"]+" src="data:image/png;base64,', bundle["text/html"])
    assert bundle["text/html"].count("<tr") == 1 + 3
    assert bundle["text/plain"].startswith("Groups of 32:")


def test_a_start_that_was_not_measured_is_refused_with_the_sizes_that_were(weight: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"group size 7 was not measured; measured: \[8, 32\]"):
        GroupExplorer(sweep(weight, [8, 32]), start=7)
