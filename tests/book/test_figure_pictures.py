"""Every figure looks as it looked when someone last looked at it: at three widths, in light and in dark.

    UPDATE_PICTURES=1 .venv/bin/python -m pytest tests/book/test_figure_pictures.py     # then look at what git shows

A picture is kept as cells of 4 by 4 pixels. The tolerance: at most 2 % of the cells may differ by more than 24 of 255
in one colour, and the height by one cell. The faces are those that the site ships: the machine's own play no part.
"""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page
from site_tools import ROOT, served

from interactives import GroupExplorer
from interactives.explorers import FIGURES
from interactives.group_errors import sweep

sys.path.append(str(ROOT / "tests" / "interactives"))
from figure_page import write_page

PICTURES = Path(__file__).parent / "pictures"
CELL = 4  # pixels
FAR, FEW = 24, 0.02
NAMES = [*FIGURES, "groups"]
FACES = """
@font-face { font-family: "Shipped"; src: url(text.woff2); font-weight: 400; }
@font-face { font-family: "Shipped"; src: url(text-bold.woff2); font-weight: 600 700; }
body, h1, h2 { font-family: "Shipped" !important; }
"""
SHIPPED = """() => Promise.all([...document.querySelectorAll("[data-lm-suppress-shortcuts]")].map(({ shadowRoot }) => {
    const style = document.createElement("style");
    style.textContent = '.x { font-family: "Shipped" !important; } *, ::before { caret-color: transparent; }';
    shadowRoot.append(style);
}).concat([document.fonts.load("16px Shipped"), document.fonts.load("bold 16px Shipped")]))"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def figures(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a page with all figures and the faces of the site."""
    folder = tmp_path_factory.mktemp("figures")
    page = write_page(folder)
    for face in ("text", "text-bold"):
        (folder / f"{face}.woff2").write_bytes((site / "_static" / "fonts" / f"{face}.woff2").read_bytes())
    weight = np.random.default_rng(0).standard_normal((16, 512)).astype(np.float32)
    groups = GroupExplorer(sweep(weight, [8, 16, 32, 64, 128]))._repr_mimebundle_()[0]["text/html"]
    html = page.read_text("utf-8").replace("</main>", f"<section>{groups}</section></main>")
    page.write_text(html.replace("</head>", f"<style>{FACES}</style></head>"), "utf-8")
    with served(folder) as address:
        yield address


def open_all(page: Page, address: str) -> None:
    """Bring every figure to life and answer its question."""
    page.goto(address)
    for name in NAMES:
        box = page.locator(f"[data-interactive={name}]")
        box.scroll_into_view_if_needed()
        box.locator("css=[data-figure]").wait_for()
        answer = box.get_by_role("button", name="Show me")
        if answer.count():
            answer.click()
    page.evaluate(SHIPPED)
    page.wait_for_timeout(300)


def small(png: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    return picture.resize((picture.width // CELL, picture.height // CELL), Image.Resampling.BOX)


def differs(now: Image.Image, then: Image.Image) -> str:
    """In words, or '' where both are the same within the tolerance."""
    if now.width != then.width or abs(now.height - then.height) > 1:
        return f"{now.size} cells instead of {then.size}"
    height = min(now.height, then.height)
    here, there = (np.asarray(one, dtype=np.int16)[:height] for one in (now, then))
    share = float((np.abs(here - there).max(axis=2) > FAR).mean())
    return f"{share:.1%} of the cells are others" if share > FEW else ""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 768, 1280])
def test_figures_look_as_when_someone_last_looked(
    browser: Browser, figures: str, width: int, theme: str, tmp_path: Path
) -> None:
    changed = {}
    options = {"viewport": {"width": width, "height": 1000}, "color_scheme": theme, "reduced_motion": "reduce"}
    with browser.new_context(**options) as context:  # type: ignore[arg-type]
        page = context.new_page()
        open_all(page, figures)
        for name in NAMES:
            now = small(page.locator(f"[data-interactive={name}]").screenshot())
            file = PICTURES / f"{name}-{width}-{theme}.png"
            if os.environ.get("UPDATE_PICTURES"):
                PICTURES.mkdir(exist_ok=True)
                now.save(file, optimize=True)
            elif found := differs(now, Image.open(file).convert("RGB")):
                now.save(tmp_path / file.name)
                changed[file.name] = f"{found}; see {tmp_path / file.name}"
    assert changed == {}


def test_the_comparison_sees_a_moved_bar_and_overlooks_a_shade() -> None:
    plain = Image.new("RGB", (100, 100), "white")
    shaded, barred = plain.copy(), plain.copy()
    shaded.paste((240, 240, 240), (0, 0, 100, 50))
    barred.paste((0, 114, 178), (0, 0, 30, 10))
    assert differs(shaded, plain) == ""
    assert differs(barred, plain) == "3.0% of the cells are others"
    assert differs(Image.new("RGB", (100, 103)), plain) == "(100, 103) cells instead of (100, 100)"


def test_the_pictures_are_small() -> None:
    files = list(PICTURES.glob("*.png"))
    assert len(files) == len(NAMES) * 6
    assert sum(file.stat().st_size for file in files) < 2_000_000
