"""The progress page's widget: what it does with a chosen file, and what it says where the browser stores nothing."""

import json
from pathlib import Path

import pytest
from figure_page import write_page
from playwright.sync_api import Browser, Page, expect

from interactives.base import place

pytestmark = pytest.mark.browser

REFUSING = "Object.defineProperty(window, 'localStorage', {get() {throw new DOMException('no', 'SecurityError')}})"
PROGRESS = {
    "format": "llm-serving-course progress",
    "version": 1,
    "xp": {"quiz/01": 50},
    "quizzes": {},
    "opening": {},
    "predictions": {},
    "review": {},
    "code": {},
    "streak": {"on": False, "days": []},
}


@pytest.fixture
def address(tmp_path: Path) -> str:
    page = write_page(tmp_path, ["roofline"])
    widget = place("progress", {"lessons": [["01", "Prefill", 50]], "programs": []}, "")
    page.write_text(page.read_text().replace("</main>", f"{widget}</main>"))
    return page.as_uri()


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    page.get_by_text("Your progress in this browser").scroll_into_view_if_needed()
    return page


def test_a_file_is_checked_before_the_learner_is_asked_to_replace_anything(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        page.evaluate("text => { localStorage['llm-course.progress'] = text }", json.dumps(PROGRESS))
        opened(page, address)
        broken = tmp_path / "broken.json"
        broken.write_text(json.dumps({**PROGRESS, "xp": {"quiz/01": "fifty"}}))
        page.get_by_label("Import a file").set_input_files(broken)
        told = page.locator(".result")
        expect(told).to_have_text('The file is damaged at "xp", entry "quiz/01". Nothing was changed.')
        expect(page.get_by_role("group", name="Please confirm")).to_have_count(0)

        good = tmp_path / "good.json"
        good.write_text(json.dumps({**PROGRESS, "xp": {"quiz/01": 50, "quiz/02": 30}}))
        page.get_by_label("Import a file").set_input_files(good)
        page.get_by_role("group", name="Please confirm").get_by_role("button", name="Replace it").click()
        expect(told).to_have_text("Imported: 80 XP.")


def test_forgetting_everything_forgets_the_answers_of_the_figures(browser: Browser, address: str) -> None:
    with browser.new_context() as context:
        page = opened(context.new_page(), address)
        page.get_by_role("button", name="Show me").click()
        assert "roofline-crossing" in page.evaluate("localStorage['llm-course.progress']")
        page.get_by_role("button", name="Forget everything").click()
        page.get_by_role("group", name="Please confirm").get_by_role("button", name="Forget everything").click()
        assert page.evaluate("Object.keys(localStorage)") == []
        page.reload()
        expect(page.get_by_role("button", name="Show me")).to_be_visible()


def test_full_storage_keeps_what_was_there_on_the_page_and_says_so_once(browser: Browser, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        page.evaluate("text => { localStorage['llm-course.progress'] = text }", json.dumps(PROGRESS))
        page.evaluate(
            "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }"
        )
        page.get_by_role("button", name="Show me").click()
        page.get_by_role("button", name="Reset").click()
        page.get_by_role("button", name="Show me").click()
        expect(page.locator("[data-course-notice]")).to_have_count(1)
        expect(page.locator("[data-course-notice]")).to_contain_text("cannot be saved here")
        expect(page.locator("[data-figure=progress]")).to_contain_text("50 XP")


def test_where_storage_is_denied_the_page_says_that_nothing_is_kept_and_the_figures_work(
    browser: Browser, address: str
) -> None:
    with browser.new_context() as context:
        context.add_init_script(REFUSING)
        page = opened(context.new_page(), address)
        expect(page.locator("[data-figure=progress]")).to_contain_text("This browser does not keep it")
        page.get_by_role("button", name="Show me").click()
        expect(page.get_by_role("slider").first).to_be_enabled()
        expect(page.locator("[data-course-notice]")).to_contain_text("kept only until you leave it")
