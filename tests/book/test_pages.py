"""Every page of the site, each opened once, on a phone: what went wrong meanwhile, and what a reader would miss.

The survey looks at each page in light and in dark and leaves notes; each test reads one kind of note.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Page
from site_tools import BOOK, page_of

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

# What looks the same on every page and there is much of: it is looked at on one page.
ALIKE = ["main div.highlight pre", "main .katex", "main dl.api"]
WHOLE = ("notebooks/04a_number_formats.html", "reference/bounds.html")
RUN_AXE = """async ([options, without]) => {
    const found = await axe.run({ exclude: without.map((one) => [one]) }, { ...options, resultTypes: ["violations"] });
    return found.violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].target.join(" "), nodes[0].html]);
}"""
RAW_LATEX = """() => {
    const page = document.querySelector("main").cloneNode(true);
    page.querySelectorAll("pre, code, script, .katex-mathml, [data-state]").forEach((one) => one.remove());
    return page.textContent;
}"""


@dataclass
class Notes:
    """The findings of the survey on one page."""

    faults: list[str] = field(default_factory=list)
    too_wide: dict[int, int] = field(default_factory=dict)
    violations: dict[str, list[Any]] = field(default_factory=dict)
    text: str = ""
    images: list[tuple[bool, str]] = field(default_factory=list)
    unmounted: list[str] = field(default_factory=list)
    print_hidden: list[str] = field(default_factory=list)


def look(page: Page, notes: Notes, axe: str, whole: bool) -> None:
    """Unfold the cells and scroll through the page, so that everything is there, then note what is to be noted."""
    page.locator("main details.hide").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    height = page.evaluate("document.documentElement.scrollHeight")
    for y in range(0, height, 1200):
        page.evaluate("y => scrollTo(0, y)", y)
    page.wait_for_timeout(200)
    boxes = page.locator("[data-interactive]")
    for index in range(boxes.count()):
        box = boxes.nth(index)
        box.scroll_into_view_if_needed()
        try:
            box.and_(page.locator("[data-ready]")).wait_for(timeout=10_000)
        except Exception:
            notes.unmounted.append(box.get_attribute("data-interactive") or "?")
    for image in page.locator("main img").all():
        image.scroll_into_view_if_needed()
        width = image.evaluate("async (e) => { await e.decode().catch(() => {}); return e.naturalWidth; }")
        notes.images.append((width > 0, image.get_attribute("alt") or ""))
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 844})
        found = page.evaluate("document.documentElement.scrollWidth")
        if found > width:
            notes.too_wide[width] = found
    notes.text = page.evaluate(RAW_LATEX)
    page.evaluate("() => scrollTo(0, 0)")
    page.evaluate(f"{axe}; 0")
    without = [] if whole else ALIKE
    notes.violations["light"] = page.evaluate(RUN_AXE, [{}, without])
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(100)
    notes.violations["dark"] = page.evaluate(RUN_AXE, [{}, without])
    page.emulate_media(color_scheme="light", media="print")
    hidden = ["#pst-primary-sidebar", ".prev-next-footer", ".article-header-buttons", ".practice-app", ".discussion"]
    notes.print_hidden = [part for part in hidden if page.locator(part).first.is_visible()]


@pytest.fixture(scope="module")
def survey(browser: Any, address: str, page_names: list[str]) -> dict[str, Notes]:
    axe = (BOOK / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    found = {}
    for name in os.environ.get("COURSE_PAGES", "").split() or page_names:
        with page_of(browser, viewport={"width": 390, "height": 844}) as seen:
            seen.page.goto(address + name, wait_until="load")
            found[name] = Notes(seen.faults)
            look(seen.page, found[name], axe, whole=name in WHOLE)
    return found


def noted(survey: dict[str, Notes], pick: Callable[[Notes], Any]) -> dict[str, Any]:
    return {name: found for name, notes in survey.items() if (found := pick(notes))}


def test_the_site_has_its_pages(page_names: list[str]) -> None:
    wanted = {"index", "practice", "problem_sets", "review", "progress", "formulas", "glossary", "reference"}
    wanted |= {"bibliography", "instructor", "contributing", "search", "404", "reference/engine"}
    wanted |= {f"practice/{folder.name}" for folder in (BOOK.parent / "exercises" / "practice").glob("[0-9]*")}
    wanted |= {f"notebooks/{file.stem}" for file in (BOOK.parent / "notebooks").glob("[0-9]*.ipynb")}
    assert {f"{name}.html" for name in wanted} <= set(page_names)


def test_every_page_opens_without_another_host_and_without_an_error(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: notes.faults) == {}


def test_no_page_scrolls_sideways_on_a_phone(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: notes.too_wide) == {}


def test_axe_finds_nothing_in_light(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: notes.violations["light"]) == {}


def test_axe_finds_nothing_in_dark(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: notes.violations["dark"]) == {}


def test_every_interactive_comes_to_life(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: notes.unmounted) == {}


def test_every_picture_shows_and_says_what_it_shows(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: [alt for shown, alt in notes.images if not shown or len(alt) <= 20]) == {}


def test_no_formula_is_left_as_latex(survey: dict[str, Notes]) -> None:
    raw = re.compile(r"\$[^\d\s]|\\(?:frac|max|text|sqrt|hat|lvert|cdot)\b")
    assert noted(survey, lambda notes: raw.findall(notes.text)) == {}


def test_paper_gets_no_buttons_and_no_navigation(survey: dict[str, Notes]) -> None:
    assert noted(survey, lambda notes: notes.print_hidden) == {}


def test_a_page_without_scripts_still_shows_questions_figures_and_samples(browser: Any, address: str) -> None:
    with page_of(browser, java_script_enabled=False) as seen:
        page = seen.page
        page.goto(address + "practice/01_groupwise_int8.html")
        assert "group 1: scale 0.06299 q 2 -8 5 1 127" in page.locator(".practice-paper").inner_text()
        page.goto(address + "notebooks/01_prefill_and_decode.html")
        assert page.locator("[data-interactive=roofline] svg").first.is_visible()
        assert page.locator("[data-interactive=quiz] ol > li").count() == 7


def test_the_survey_saw_every_page(survey: dict[str, Notes], page_names: list[str]) -> None:
    assert sorted(survey) == page_names
