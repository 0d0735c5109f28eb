"""The site as a reader meets it: in a browser that can reach nothing but the site's own server."""

import gzip
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from site_tools import ROOT, Visit

LESSON = "notebooks/04_quantization.html"
Opener = Callable[..., Visit]

pytestmark = pytest.mark.browser


def test_every_page_opens_without_another_host_and_without_an_error(visit: Opener, page_names: list[str]) -> None:
    assert {"index.html", LESSON, "bibliography.html", "search.html"} <= set(page_names)
    faults = {name: seen.faults for name in page_names if (seen := visit(name)).faults}
    assert faults == {}


def test_every_figure_shows_and_says_what_it_shows(visit: Opener, page_names: list[str]) -> None:
    figures = []
    for name in page_names:
        page = visit(name).page
        for image in page.locator("main img").all():
            image.scroll_into_view_if_needed()
            expect(image).to_have_js_property("complete", True)
            width, alt = image.evaluate("e => [e.naturalWidth, e.alt]")
            figures.append((name, width > 0, len(alt) > 20))
    assert len([figure for figure in figures if figure[0] == LESSON]) >= 3
    assert [figure for figure in figures if not (figure[1] and figure[2])] == []


def test_a_figure_keeps_its_place_free_before_it_is_loaded(visit: Opener) -> None:
    page = visit(LESSON).page
    unloaded = page.locator("main img").evaluate_all("all => all.filter((e) => !e.complete).map((e) => e.clientHeight)")
    assert unloaded  # the lesson is long: its last figures are out of sight
    assert min(unloaded) > 100  # pixels


def test_formulas_are_rendered(visit: Opener, page_names: list[str]) -> None:
    for name in page_names:
        text = visit(name).page.evaluate(
            """() => {
                const page = document.querySelector("main").cloneNode(true);
                page.querySelectorAll("pre, code, .katex-mathml").forEach((e) => e.remove());
                return page.textContent;
            }"""
        )
        assert re.findall(r"\$[^\d\s]|\\(?:frac|max|text|sqrt|hat)\b", text) == [], f"raw LaTeX on {name}"

    lesson = visit(LESSON).page
    expect(lesson.locator(".katex-display .mfrac").first).to_be_visible()  # absmax: a fraction
    expect(lesson.locator(".katex-mathml math").first).to_be_attached()  # for screen readers
    assert lesson.evaluate("document.fonts.check('16px KaTeX_Main') && document.fonts.check('16px KaTeX_Math')")


@pytest.mark.parametrize("way", ["the search page", "the search field"])
def test_search_finds_absmax_in_the_lesson(visit: Opener, way: str) -> None:
    if way == "the search page":
        page = visit("search.html?q=absmax").page
    else:
        page = visit("index.html").page
        page.keyboard.press("Control+k")
        page.locator("dialog input[name=q]").fill("absmax")
        page.keyboard.press("Enter")
    found = page.locator("#search-results li a", has_text="Quantization").first
    expect(found).to_be_visible(timeout=15_000)
    result = page.locator("#search-results li", has_text="Quantization: fewer bits")
    expect(result).to_contain_text("stores a group of weights w as small integers q")  # each formula once
    found.click()
    page.wait_for_url(f"**/{LESSON}*")


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_never_scrolls_sideways(visit: Opener, page_names: list[str], width: int) -> None:
    too_wide = {}
    for name in [*page_names, "search.html?q=absmax"]:
        page = visit(name, viewport={"width": width, "height": 844}).page
        page_width = page.evaluate("document.documentElement.scrollWidth")
        if page_width > width:
            too_wide[name] = page_width
    assert too_wide == {}


def test_the_slider_shows_its_figure_and_never_an_empty_box(visit: Opener) -> None:
    page = visit(LESSON).page
    note = page.locator(".still-note")
    expect(note).to_have_count(1)
    expect(note).to_contain_text("JupyterLab")
    expect(note).to_contain_text("groups of 32")
    slider = page.locator(".cell_output", has=note)
    expect(slider.locator("img")).to_be_visible()
    expect(slider.locator("table tbody tr")).to_have_count(7)  # group sizes 8 to 512
    for nothing in ("GroupExplorer object", "interactive(children", "VBox(", "widget-view"):
        assert nothing not in page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(visit: Opener, page_names: list[str], scheme: str) -> None:
    for name in page_names:
        page = visit(name, color_scheme=scheme).page
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        ground, text = (
            luminance(page, f"getComputedStyle(document.body).{part}") for part in ("backgroundColor", "color")
        )
        assert (ground < 0.1) == (scheme == "dark")
        lighter, darker = max(ground, text) + 0.05, min(ground, text) + 0.05
        assert lighter / darker >= 7, f"contrast of the text on {name}"  # WCAG 2.2, level AAA


def luminance(page: Page, colour: str) -> float:
    """Relative luminance of a CSS colour such as 'rgb(20, 24, 28)' (WCAG 2.2)."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", page.evaluate(colour))[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_lesson_prints_with_its_title_and_its_figures(visit: Opener) -> None:
    page = visit(LESSON).page
    page.emulate_media(media="print")
    expect(page.locator("article h1")).to_be_visible()
    expect(page.locator("article img").first).to_be_visible()
    for screen_only in ("#pst-primary-sidebar", ".prev-next-footer", ".article-header-buttons", "#jb-print-docs-body"):
        expect(page.locator(screen_only)).to_be_hidden()


def test_the_download_is_the_notebook_of_the_repository(visit: Opener) -> None:
    page = visit(LESSON).page
    link = page.locator(".bd-footer-content a", has_text="notebooks/04_quantization.ipynb")
    answer = page.request.get(link.evaluate("e => e.href"))
    assert answer.body() == (ROOT / "notebooks" / "04_quantization.ipynb").read_bytes()


def test_the_home_page_quotes_the_bounds_of_the_running_example(visit: Opener) -> None:
    text = visit("index.html").page.locator("article").inner_text()
    for number in ("8,030,261,248", "16.1 GB", "3.35 TB/s", "4.794 ms", "208.6 tokens a second", "417"):
        assert number in text


def test_a_lesson_weighs_at_most_300_kb_before_the_first_interaction(visit: Opener, site: Path, address: str) -> None:
    page = visit(LESSON).page
    names = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    files = {urlsplit(name).path for name in [address + LESSON, *names]}
    prefix = urlsplit(address).path
    weights = {name: len(gzip.compress((site / name.removeprefix(prefix)).read_bytes(), 6)) for name in files}
    assert sum(weights.values()) <= 300_000, sorted(weights.items(), key=lambda item: -item[1])


class _Loads(HTMLParser):
    """Addresses that a browser loads by itself while it shows a page: not those that a reader may click."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        passive = tag == "a" or (tag == "link" and values.get("rel") in ("next", "prev", "author", "search", "index"))
        for name in () if passive else ("src", "href", "srcset", "data", "poster", "action"):
            if name in values:
                self.addresses.append(values[name])
        self.addresses += re.findall(r"url\(\s*['\"]?([^'\")]+)", values.get("style", ""))


ELSEWHERE = re.compile(r"^(?:https?:)?//")
LOADED_BY_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s;]+)")
LOADED_BY_JS = re.compile(
    r"""(?:\bimport\s*\(?|\bfrom|importScripts\(|fetch\(|Worker\(|\.src\s*=|\.href\s*=|\.open\([^,()]*,)"""
    r"""\s*["'`]((?:https?:)?//[^"'`]+)"""
)


def test_no_file_of_the_site_names_another_host_to_load_from(site: Path) -> None:
    found = []
    for file in site.rglob("*"):
        if file.suffix == ".html":
            parser = _Loads()
            parser.feed(file.read_text("utf-8"))
            found += [(file.name, address) for address in parser.addresses if ELSEWHERE.match(address)]
            scripts = re.findall(r"<script[^>]*>(.*?)</script>", file.read_text("utf-8"), re.S)
            found += [(file.name, address) for script in scripts for address in LOADED_BY_JS.findall(script)]
        elif file.suffix == ".css":
            found += [(file.name, address) for address in LOADED_BY_CSS.findall(file.read_text("utf-8"))]
        elif file.suffix in (".js", ".mjs"):
            found += [(file.name, address) for address in LOADED_BY_JS.findall(file.read_text("utf-8"))]
    assert found == []


def test_no_style_sheet_names_a_file_that_is_not_there(site: Path) -> None:
    missing = []
    for file in site.rglob("*.css"):
        for address in re.findall(r"url\(\s*['\"]?([^'\")]+)", file.read_text("utf-8")):
            if not address.startswith(("data:", "#")) and not (file.parent / address.split("?")[0]).exists():
                missing.append((file.name, address))
    assert missing == []


def test_the_site_carries_no_icon_script_and_no_trace_of_the_machine_that_built_it(site: Path) -> None:
    assert list(site.rglob("fontawesome*.js")) == []
    texts = [file for file in site.rglob("*") if file.suffix in (".html", ".js", ".css", ".ipynb")]
    tell_tale = [file for file in texts if str(ROOT) in file.read_text("utf-8")]
    assert tell_tale == []
