"""The scripts that are kept with the sources: made from them, small, and alive."""

import gzip
import json
from pathlib import Path

import pytest
from node_tools import install_packages
from traitlets import TraitError

import interactives
from interactives import build, generate
from interactives.base import STATIC
from interactives.explorers import FIGURES

MOST_BYTES = 31_500  # gzip, each; the largest has a question, a strip and two plots


def test_building_again_changes_no_script_and_no_worked_figure(tmp_path: Path) -> None:
    install_packages()
    build.bundle(tmp_path)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in STATIC.iterdir() if file.suffix in (".js", ".html")}
    assert sorted(made) == sorted(kept)
    different = [name for name in made if made[name] != kept[name]]
    assert different == [], "python -m interactives.build, then commit interactives/static"


def test_the_constants_are_those_of_the_engine() -> None:
    assert generate.TARGET.read_text("utf-8") == generate.constants(), "python -m interactives.build"


def test_every_script_is_small() -> None:
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in STATIC.glob("*.js")}
    assert {name: size for name, size in sizes.items() if size >= MOST_BYTES} == {}
    assert len(sizes) >= 9


def test_every_class_has_a_figure_and_gives_page_and_notebook_their_form() -> None:
    for name, figure in FIGURES.items():
        assert getattr(interactives, figure.__name__) is figure
        data, _ = figure()._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in data
        assert data["text/html"].startswith(f'<div class="interactive" data-interactive="{name}" data-state="')
        assert "<svg" in data["text/html"]
        assert "<table>" in data["text/html"]


def test_the_start_state_is_what_the_class_was_given() -> None:
    figure = interactives.PagedCacheExplorer(lengths=[5, 7], prefix=3, ask=False)
    state = figure.start_state()
    assert (state["lengths"], state["prefix"], state["ask"]) == ([5, 7], 3, False)
    assert json.loads(json.dumps(state)) == state


@pytest.mark.parametrize(
    ("make", "trait"),
    [
        (lambda: interactives.RooflineExplorer(batch=0), "batch"),
        (lambda: interactives.RooflineExplorer(model="gpt-9"), "model"),
        (lambda: interactives.SizingCalculator(gpu="abacus"), "gpu"),
        (lambda: interactives.QuantizationExplorer(weights=[1.0, 2.0]), "weights"),
        (lambda: interactives.QuantizationExplorer(weights=[1.0, float("nan"), 2.0, 3.0]), "weights"),
        (lambda: interactives.PagedCacheExplorer(lengths=[0]), "lengths"),
    ],
)
def test_a_value_outside_its_range_is_refused_by_name(make, trait: str) -> None:
    with pytest.raises(TraitError, match=trait):
        make()


def test_an_unknown_figure_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="RoofExplorer"):
        interactives.RoofExplorer  # noqa: B018


def test_of_given_weights_the_largest_is_the_outlier_and_all_share_a_scale() -> None:
    figure = interactives.QuantizationExplorer(weights=[0.1, -0.9, 0.2, 0.3])
    assert (figure.outlier, figure.group) == (-0.9, 4)
    assert interactives.QuantizationExplorer(weights=[0.1, -0.9, 0.2, 0.3], outlier=0.5).outlier == 0.5
