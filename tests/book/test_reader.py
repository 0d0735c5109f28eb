"""The whole way of a reader, all other hosts out of reach: read, predict, pass, take it along, come back."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from site_tools import page_of

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]

LESSON = "notebooks/01_prefill_and_decode.html"
DAY = 86_400_000  # milliseconds
READY = 30_000


def figure(page: Page, name: str) -> Locator:
    place = page.locator(f"[data-interactive={name}]").first
    place.scroll_into_view_if_needed()
    expect(place).to_have_attribute("data-ready", "", timeout=READY)
    return place


def data_of(place: Locator) -> dict[str, Any]:
    return json.loads(place.get_attribute("data-state") or "")["data"]


def shown_variant(question: dict[str, Any], fieldset: Locator) -> dict[str, Any]:
    """Which of a question's variants stands on the page: the one whose words are those of the legend."""
    said = "".join((fieldset.locator("legend").text_content() or "").split())
    (found,) = [one for one in question["variants"] if "".join(words(one["prompt"]).split()) in said][:1]
    return found


def words(nodes: Any) -> str:
    return "".join(node if isinstance(node, str) else words(node[1:]) for node in nodes)


def answer(question: dict[str, Any], fieldset: Locator, right: bool, page: Page) -> None:
    """Answer one question by keyboard alone, rightly or wrongly."""
    variant = shown_variant(question, fieldset)
    if question["kind"] == "numeric":
        fieldset.locator("input").focus()
        page.keyboard.type(f"{variant['answer']:.6g}" if right else f"{variant['answer'] * 1.7 + 3:.6g}")
    elif question["kind"] == "choice":
        fieldset.locator("input").first.focus()
        page.keyboard.press("Space")
        for _ in variant["options"]:
            index = int(fieldset.locator("input:checked").get_attribute("value") or "")
            if variant["options"][index]["correct"] == right:
                break
            page.keyboard.press("ArrowDown")
    else:
        order(variant["items"], fieldset, right, page)


def order(items: list[Any], fieldset: Locator, right: bool, page: Page) -> None:
    """Sort by the arrows' buttons, each item up to its place; a wrong answer stays as it was shuffled."""
    if not right:
        return
    wanted = ["".join(words(item).split()) for item in items]
    for place, text in enumerate(wanted):
        rows = fieldset.locator("ol.order > li > span:nth-child(2)").all_text_contents()
        now = ["".join(row.split()) for row in rows].index(text)
        if now > place:
            fieldset.locator("ol.order > li").nth(now).get_by_role("button").first.focus()
        for _ in range(now - place):
            page.keyboard.press("Enter")  # the focus goes with the item


def take(page: Page, right: int) -> list[str]:
    """Answer the lesson's quiz by keyboard with so many right answers; the ids that were answered wrongly."""
    place = figure(page, "quiz")
    questions = data_of(place)["questions"]
    for index, question in enumerate(questions):
        answer(question, place.locator("fieldset.question").nth(index), index < right, page)
    place.get_by_role("button", name="Check my answers").focus()
    page.keyboard.press("Enter")
    return [question["id"] for question in questions[right:]]


def said(place: Locator) -> str:
    """Return the text that the live region speaks."""
    place.page.wait_for_timeout(150)
    return place.locator("[role=status]").last.inner_text() or place.locator("[role=status]").last.text_content() or ""


def test_a_reader_predicts_passes_exports_forgets_imports_and_reviews_two_days_later(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    with page_of(browser, accept_downloads=True) as seen:
        page = seen.page
        page.clock.install(time="2026-06-10T12:00:00Z")
        page.goto(address + LESSON)
        page.clock.resume()

        opening = figure(page, "opening")
        opening.locator("input").first.fill("50")
        opening.get_by_role("button", name="Keep my answers").click()
        expect(opening).to_contain_text("Your answers are kept")

        prediction = figure(page, "predict")
        prediction.locator("input").fill("123456")
        prediction.get_by_role("button", name="Commit").click()
        expect(prediction.locator(".feedback")).to_contain_text("Not this")

        missed = take(page, right=4)
        quiz = figure(page, "quiz")
        assert "4 of 7 right: not passed, 5 are needed." in said(quiz)
        assert quiz.locator(".feedback").count() == 7
        before = quiz.locator("legend").all_inner_texts()
        quiz.get_by_role("button", name="Try again with new numbers").click()
        assert quiz.locator("legend").all_inner_texts() != before  # other numbers
        take(page, right=5)
        assert "5 of 7 right: passed. 50 XP earned." in said(quiz)
        expect(quiz.locator(".result")).to_be_focused()

        closing = figure(page, "closing")
        expect(closing.locator(".before").first).to_contain_text("At the start you said: 50")

        page.goto(address + "progress.html")
        progress = figure(page, "progress")
        expect(progress).to_contain_text("50 XP")
        with page.expect_download() as waiting:
            progress.get_by_role("button", name="Export as a file").click()
        file = tmp_path / "progress.json"
        waiting.value.save_as(file)
        kept = page.evaluate("localStorage.getItem('llm-course.progress')")

        progress.get_by_role("button", name="Forget everything").click()
        progress.get_by_role("group", name="Please confirm").get_by_role("button", name="Forget everything").click()
        expect(progress).to_contain_text("0 XP")

        broken = tmp_path / "broken.json"
        broken.write_text(file.read_text()[:400])
        progress.get_by_label("Import a file").set_input_files(broken)
        expect(progress.locator(".result")).to_contain_text("it is not JSON")
        expect(progress.locator(".result")).to_contain_text("Nothing was changed.")
        progress.get_by_label("Import a file").set_input_files(file)
        expect(progress.locator(".result")).to_have_text("Imported: 50 XP.")
        assert json.loads(page.evaluate("localStorage.getItem('llm-course.progress')")) == json.loads(kept)

        page.goto(address + "review.html")
        expect(figure(page, "review")).to_contain_text("Nothing is due today.")
        assert seen.faults == []

    # A clock that was installed stays for its whole context, so two days later is another browser with the same file.
    with page_of(browser) as seen:
        page = seen.page
        page.clock.install(time="2026-06-12T12:00:00Z")
        page.goto(address + "progress.html")
        page.clock.resume()
        figure(page, "progress").get_by_label("Import a file").set_input_files(file)
        expect(figure(page, "progress").locator(".result")).to_have_text("Imported: 50 XP.")
        page.goto(address + "review.html")
        review = figure(page, "review")
        expect(review).to_contain_text(" due ")
        due = json.loads(kept)["review"]
        assert {item["question"] for item in due.values() if item["kind"] == "quiz"} >= set(missed[1:])
        assert any(item["kind"] == "prediction" for item in due.values())
        review.locator("input[type=text], input[type=radio], ol button").first.wait_for()
        for _ in range(len(due)):
            if review.locator("input[type=text]").count():
                review.locator("input[type=text]").fill("1")
            elif review.locator("input[type=radio]").count():
                review.locator("input[type=radio]").first.check()
            review.get_by_role("button", name="Check").click()
            expect(review).to_contain_text("It comes back")
            review.get_by_role("button", name="Next question").or_(review.get_by_role("button", name="Finish")).click()
        expect(review).to_contain_text(f"Done for today: {len(due)} answered.")
        assert seen.faults == []


def test_a_quiz_option_with_quotes_brackets_and_maths_can_be_chosen_and_its_text_is_exact(
    browser: Browser, address: str
) -> None:
    text = 'it\'s "<b>" & α'
    variant = {
        "prompt": ["Which?"],
        "options": [
            {"text": ['it\'s "<b>" & ', ["math", ["mi", "α"]]], "correct": True, "mistake": None, "explain": ["Yes."]},
            {"text": ["none"], "correct": False, "mistake": "all missed", "explain": ["No."]},
        ],
        "explain": ["So."],
    }
    quiz = {
        **{"lesson": "try", "title": "Try", "pass": 1, "xp": 50},
        "questions": [{"id": "marks", "kind": "choice", "variants": [variant]}],
    }
    with page_of(browser) as seen:
        page = seen.page
        page.goto(address + LESSON)
        figure(page, "quiz")
        page.evaluate(
            """(data) => {
                const el = document.createElement("div");
                el.id = "tried";
                document.querySelector("article").prepend(el);
                globalThis.courseInteractives.quiz.render({ model: { get: () => data, set() {}, on() {} }, el });
            }""",
            quiz,
        )
        tried = page.locator("#tried")
        option = tried.locator("label.option", has_text="it's")
        assert option.text_content() == text
        option.click()
        tried.get_by_role("button", name="Check my answers").click()
        expect(tried.locator(".result")).to_contain_text("1 of 1 right: passed.")
