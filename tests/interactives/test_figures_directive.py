"""The Sphinx extension: a figure and a GPU number on a page, and a build that fails for what does not exist."""

import html
import json
import re
import sys
from pathlib import Path

import pytest
from sphinx.testing.util import SphinxTestApp

EXTENSIONS = Path(__file__).parents[2] / "book" / "_ext"


def build(folder: Path, page: str) -> tuple[str, str, Path]:
    """(HTML of the page, warnings, folder of the site)."""
    source = folder / "source"
    source.mkdir()
    (source / "index.md").write_text(page, encoding="utf-8")
    (source / "conf.py").write_text('extensions = ["myst_parser", "course_interactives"]\n', encoding="utf-8")
    sys.path.append(str(EXTENSIONS))
    app = SphinxTestApp(srcdir=source, builddir=folder / "built")
    try:
        app.build()
        return (Path(app.outdir) / "index.html").read_text("utf-8"), app.warning.getvalue(), Path(app.outdir)
    finally:
        app.cleanup()
        sys.path.remove(str(EXTENSIONS))


def test_a_directive_leaves_the_figure_drawn_for_its_own_state_and_the_script_that_wakes_it(tmp_path: Path) -> None:
    page, warnings, site = build(tmp_path, "# Page\n\n```{interactive} roofline\nbatch: 64\n```\n")
    assert warnings == ""
    (state,) = re.findall(r'data-interactive="roofline" data-state="([^"]+)"', page)
    assert json.loads(html.unescape(state))["batch"] == 64
    assert "9.923 ms a step, 6,450 tokens/s" in page  # of batch 64, without a script
    (script,) = re.findall(r'<script[^>]* src="(_static/interactives/host\.js[^"]*)"', page)
    assert (site / script.partition("?")[0]).exists()
    roofline = (site / "_static" / "interactives" / "roofline.js").read_text("utf-8")
    assert "export" not in roofline[-200:]  # a classic script: it also loads from a file
    assert 'courseInteractives??={})["roofline"]=' in roofline


def test_a_number_that_follows_the_gpu_carries_its_value_for_each(tmp_path: Path) -> None:
    role = "{gpu}`decode_tokens_per_second(weight_bytes(llama_3_8b.n_params, 16), gpu.bandwidth), .1f`"
    page, warnings, _ = build(tmp_path, f"# Page\n\nAt best {role} tokens/s.\n")
    assert warnings == ""
    values, shown = re.findall(r'<span data-gpu-number="([^"]+)">([^<]+)</span>', page)[0]
    assert shown == "208.6"
    assert json.loads(html.unescape(values)) == {
        "h100-sxm": "208.6",
        "h200": "298.9",
        "a100-80g": "127.0",
        "generic-1tb": "62.3",
    }


def test_a_page_without_a_figure_loads_no_script(tmp_path: Path) -> None:
    page, _, _ = build(tmp_path, "# Page\n\nWords.\n")
    assert "interactives/host.js" not in page


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("```{interactive} rooftop\n```", "no interactive figure 'rooftop'"),
        ("```{interactive} roofline\nbatch: 0\n```", "batch"),
        ("```{interactive} roofline\nbatches: 4\n```", "has no setting batches"),
        ("{gpu}`gpu.speed, .1f`", "has no attribute 'speed'"),
    ],
)
def test_what_does_not_exist_is_a_warning_and_so_fails_the_build(tmp_path: Path, page: str, told: str) -> None:
    _, warnings, _ = build(tmp_path, f"# Page\n\n{page}\n")
    assert told in warnings
