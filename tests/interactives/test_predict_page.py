"""A prediction on a page: what stands covered below it opens with the commit, and not before."""

from pathlib import Path

import pytest
from figure_page import write_page
from playwright.sync_api import Browser, Page, expect

from interactives import Predict

pytestmark = pytest.mark.browser

COVERED = """
{first}
<details class="above-output" id="output"><summary>Output</summary>measured: 7</details>
<details class="explain" id="why"><summary>Explanation</summary>Because.</details>
<details class="above-output" id="later"><summary>Output</summary>of the next cell</details>
{second}
<details class="explain" id="other"><summary>Explanation</summary>Since.</details>
"""


@pytest.fixture
def address(tmp_path: Path) -> str:
    page = write_page(tmp_path, ["roofline"])
    asked = {
        name: Predict(f"How many of the {name}?", answer=7, unit=name, key=f"00-{name}")._repr_mimebundle_()[0]
        for name in ("heads", "layers")
    }
    body = COVERED.format(first=asked["heads"]["text/html"], second=asked["layers"]["text/html"])
    page.write_text(page.read_text().replace("</main>", f"{body}</main>"))
    return page.as_uri()


def commit(page: Page, unit: str, number: str) -> None:
    box = page.get_by_label(f"Your answer in {unit}")
    box.scroll_into_view_if_needed()
    box.fill(number)
    box.press("Enter")


def is_open(page: Page, name: str) -> bool:
    return page.locator(f"#{name}").evaluate("details => details.open")


def test_a_commit_opens_outputs_and_explanation_up_to_the_next_prediction(browser: Browser, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        page.locator("#other").scroll_into_view_if_needed()
        expect(page.get_by_label("Your answer in heads")).to_be_attached()
        expect(page.get_by_label("Your answer in layers")).to_be_attached()
        assert not any(is_open(page, name) for name in ("output", "why", "later", "other"))
        commit(page, "heads", "9")
        expect(page.get_by_text("Because.")).to_be_visible()
        assert [is_open(page, name) for name in ("output", "why", "later", "other")] == [True, True, False, False]


def test_an_explanation_stays_open_for_a_reader_who_has_answered(browser: Browser, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        commit(page, "layers", "7")
        expect(page.get_by_text("Since.")).to_be_visible()
        page.reload()
        page.locator("#other").scroll_into_view_if_needed()
        expect(page.get_by_text("Since.")).to_be_visible()
        assert not is_open(page, "why")


def test_an_explanation_can_be_opened_without_an_answer(browser: Browser, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        page.locator("#why summary").click()
        expect(page.get_by_text("Because.")).to_be_visible()
