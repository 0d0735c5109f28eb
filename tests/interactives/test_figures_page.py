"""The figures on a page without a kernel: by keyboard, on a phone, in the dark, on paper, and fast."""

import functools
import http.server
import json
import re
import statistics
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figure_page import write_page
from node_tools import install_packages
from playwright.sync_api import Browser, Locator, Page, expect

from interactives import GroupExplorer, build
from interactives.explorers import FIGURES
from interactives.group_errors import sweep

ROOT = Path(__file__).parents[2]
AXE = ROOT / "interactives" / "node_modules" / "axe-core" / "axe.min.js"
SLIDERS = {
    "roofline": "Batch",
    "batching": "Batch",
    "paged": "Shared beginning",
    "timeline": "Slots",
    "quantization": "The outlier",
    "speculative": "Drafted tokens k",
    "draft": "Acceptance α",
    "sizing": "Sequences at once",
}
pytestmark = pytest.mark.browser


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page")
    write_page(folder)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Any]:
    """visit(query, **options of the context) opens the page; an error on it fails the test."""
    contexts, faults = [], []

    def open_page(query: str = "", **options: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1000, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(address + query)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def figure(page: Page, name: str, *, shown: bool = True) -> Locator:
    """The figure once it is alive; `shown`: its question answered with "Show me"."""
    box = page.locator(f"[data-interactive={name}]")
    box.scroll_into_view_if_needed()
    box.locator("css=[data-figure]").wait_for()
    if shown:
        box.get_by_role("button", name="Show me").click()
    return box


def all_figures(page: Page) -> list[Locator]:
    return [figure(page, name) for name in FIGURES]


def progress(page: Page) -> dict[str, Any]:
    """What the browser remembers of the learner."""
    (key,) = re.findall(r'^export const KEY = "(.+)";', (build.HERE / "src/shared/store.js").read_text("utf-8"), re.M)
    return json.loads(page.evaluate("key => localStorage[key]", key))


def said(box: Locator) -> Locator:
    return box.get_by_role("status")


def test_every_figure_asks_first_and_shows_after_a_guess(visit: Any) -> None:
    page = visit()
    for name in FIGURES:
        box = figure(page, name, shown=False)
        expect(box.get_by_role("button", name="Commit")).to_be_visible()
        expect(box.get_by_role("slider").first).to_be_disabled()
        box.get_by_role("button", name="Show me").click()
        expect(box.get_by_role("slider").first).to_be_enabled()
        expect(box.get_by_role("button", name="Commit")).to_have_count(0)


def test_axe_finds_nothing_in_the_light_and_in_the_dark_before_and_after_a_guess(visit: Any) -> None:
    install_packages()
    found = []
    for scheme in ("light", "dark"):
        page = visit(color_scheme=scheme)
        page.add_style_tag(content="@media (prefers-color-scheme: dark) { body { background: #121212; color: #eee } }")
        for name in FIGURES:
            figure(page, name, shown=False)
        page.add_script_tag(path=str(AXE))
        for _ in ("before", "after"):
            report = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found += [(scheme, one["id"], one["nodes"][0]["html"][:200]) for one in report["violations"]]
            for button in page.get_by_role("button", name="Show me").all()[::-1]:
                button.click()
            for button in page.get_by_role("button", name="Numbers as a table").all()[::-1]:
                button.click()
            page.wait_for_timeout(400)  # what fades in has faded in
    assert found == []


def test_a_round_by_keyboard_alone_and_what_it_announces(visit: Any) -> None:
    page = visit()
    box = figure(page, "roofline", shown=False)
    options = box.get_by_role("radio")
    options.first.focus()
    page.keyboard.press("Space")
    for _ in range(2):
        if not box.get_by_role("radio", name="At no batch size").is_checked():
            page.keyboard.press("ArrowDown")
    expect(box.get_by_role("radio", name="At no batch size")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # Commit
    expect(box.locator("css=.right")).to_have_text("✓ Right:")
    expect(box.locator("css=[data-key=verdict]")).to_be_focused()

    slider = box.get_by_role("slider", name="Batch")
    slider.focus()
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "1,024 sequences")
    expect(said(box)).to_contain_text("Decode at batch 1,024")
    expect(said(box)).to_contain_text("does not fit into memory")
    expect(box.get_by_role("spinbutton", name="Batch, exact value")).to_have_value("1024")

    number = box.get_by_role("spinbutton", name="Batch, exact value")
    number.fill("64")
    expect(said(box)).to_contain_text("9.923 ms a step, 6,450 tokens/s")
    number.fill("0")
    page.keyboard.press("Enter")
    expect(box.get_by_role("alert").filter(has_text="A whole number from 1 to 1,024")).to_be_visible()
    expect(said(box)).to_contain_text("Decode at batch 64")

    table = box.get_by_role("button", name="Numbers as a table")
    table.focus()
    page.keyboard.press("Enter")
    expect(box.get_by_role("row", name="32 22.2 7.358 4,349 bandwidth")).to_be_visible()
    box.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Enter")
    expect(said(box)).to_contain_text("Decode at batch 8 ")
    expect(box.get_by_role("button", name="Commit")).to_be_visible()


def test_a_wrong_guess_is_told_why_and_becomes_a_review_item(visit: Any) -> None:
    page = visit()
    box = figure(page, "roofline", shown=False)
    box.get_by_role("radio", name="About batch 296").check()
    box.get_by_role("button", name="Commit").click()
    expect(box.locator("css=.ask")).to_contain_text("You said: About batch 296.")
    expect(box.locator("css=.ask")).to_contain_text("each sequence also reads its own KV cache")
    kept = progress(page)
    assert kept["predictions"]["roofline-crossing"]["correct"] is False
    assert "prediction/roofline-crossing" in kept["review"]

    sizing = figure(page, "sizing", shown=False)
    sizing.get_by_role("textbox", name="Your answer in GPUs").fill("3")
    page.keyboard.press("Enter")
    expect(sizing.locator("css=.right")).to_be_visible()
    kept = progress(page)
    assert kept["predictions"]["sizing-gpus"]["correct"] is True
    assert list(kept["review"]) == ["prediction/roofline-crossing"]


def test_every_number_box_takes_thousands_separators_and_the_digits_of_other_scripts(visit: Any) -> None:
    page = visit()
    roofline = figure(page, "roofline")
    context = roofline.get_by_role("spinbutton", name="Context, exact value")
    for typed in ("4,096", "4 096", "٤٠٩٦", "４０９６"):
        context.fill("64")
        page.keyboard.press("Enter")
        context.fill(typed)
        page.keyboard.press("Enter")
        expect(said(roofline)).to_contain_text("4,096 tokens of context")
    batching = figure(page, "batching", shown=False)
    drawn = batching.get_by_role("spinbutton", name="64", exact=True)
    drawn.fill("６,０００")
    page.keyboard.press("Tab")
    expect(said(batching)).to_contain_text("Your guess at batch 64: 6,000 tokens/s")
    sizing = figure(page, "sizing", shown=False)
    sizing.get_by_role("textbox", name="Your answer in GPUs").fill("٣")
    page.keyboard.press("Enter")
    expect(sizing.locator("css=.right")).to_be_visible()


def test_arrow_keys_step_a_number_box_as_its_slider(visit: Any) -> None:
    page = visit()
    box = figure(page, "draft").get_by_role("spinbutton", name="Acceptance α")
    box.press("ArrowUp")
    expect(box).to_have_value("0.81")
    box.press("ArrowDown")
    box.press("ArrowDown")
    expect(box).to_have_value("0.79")


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "speculative"])
def test_an_answered_figure_stays_open_after_a_reload_with_its_state_in_the_address(visit: Any, name: str) -> None:
    page = visit()
    box = figure(page, name)
    slider = box.get_by_role("slider", name=SLIDERS[name])
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(f"**{name}.**")
    page.reload()
    again = figure(page, name, shown=False)
    expect(again.get_by_role("button", name="Commit")).to_have_count(0)
    expect(again.get_by_role("slider").first).to_be_enabled()


def test_a_shared_link_shows_its_state_and_asks_about_the_start(visit: Any) -> None:
    box = figure(visit("?quantization.outlier=1.5"), "quantization", shown=False)
    expect(box.get_by_role("slider").first).to_be_enabled()
    expect(box.locator("css=.ask")).to_contain_text("none but one beyond ±2, share one 4-bit scale. That one is 8.")
    box.get_by_role("button", name="Reset").click()
    expect(box.get_by_role("button", name="Commit")).to_be_visible()


def test_ten_key_presses_on_a_slider_are_spoken_once(visit: Any) -> None:
    page = visit()
    box = figure(page, "roofline")
    page.wait_for_timeout(700)
    said(box).evaluate(
        "live => { globalThis.spoken = []; new MutationObserver(() => globalThis.spoken.push(live.textContent))"
        ".observe(live, { childList: true, characterData: true, subtree: true }); }"
    )
    box.get_by_role("slider", name="Batch").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(900)
    spoken = page.evaluate("globalThis.spoken")
    assert len(spoken) == 1
    assert spoken[0] == box.locator("css=.say").inner_text()


def test_a_panel_that_is_there_does_not_fade_in_again(visit: Any) -> None:
    page = visit()
    box = figure(page, "batching")
    page.wait_for_timeout(400)
    box.get_by_role("slider", name="Batch").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        panel = box.locator("css=.panel").nth(1)
        assert panel.evaluate("e => [Number(getComputedStyle(e).opacity), e.getAnimations().length]") == [1, 0]


def test_an_empty_guess_is_asked_for_again(visit: Any) -> None:
    box = figure(visit(), "draft", shown=False)
    box.get_by_role("button", name="Commit").click()
    expect(box.get_by_role("alert").filter(has_text="Type a number")).to_be_visible()


def test_a_throughput_curve_is_drawn_by_mouse_or_typed_and_judged_at_batch_64(visit: Any) -> None:
    page = visit()
    box = figure(page, "batching", shown=False)
    handle = box.locator("css=[data-drag=guess-3]")
    area = handle.bounding_box()
    assert area is not None
    x, y = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 120, steps=5)
    page.mouse.up()
    typed = box.get_by_role("spinbutton", name="64", exact=True)
    assert float(typed.input_value()) > 1000
    typed.fill("6000")
    page.keyboard.press("Tab")
    expect(box.get_by_role("spinbutton", name="256", exact=True)).to_be_focused()
    expect(said(box)).to_contain_text("Your guess at batch 64: 6,000 tokens/s")
    box.get_by_role("button", name="Commit").click()
    expect(box.locator("css=.ask")).to_contain_text("At batch 64 you drew 6,000; the bound is 6,450 tokens/s.")
    kept = progress(page)
    assert kept["predictions"]["batching-throughput"]["correct"] is True


def test_copy_on_write_is_told_step_by_step(visit: Any) -> None:
    page = visit()
    box = figure(page, "paged")
    box.get_by_role("button", name="Fork A").click()
    expect(said(box)).to_contain_text("E gets a copy of A's block table: 3 numbers, no token is copied.")
    box.get_by_role("button", name="Write a token to E").focus()
    page.keyboard.press("Enter")
    expect(box.get_by_role("listitem")).to_have_count(4)
    expect(box.get_by_role("listitem").nth(1)).to_have_text(
        "Block 16 is taken from the free ones, and what block 2 holds is copied."
    )
    expect(box.get_by_role("button", name="Write a token to E")).to_be_focused()
    lengths = box.get_by_role("textbox", name="Sequences, tokens each")
    lengths.fill("37, 0")
    page.keyboard.press("Enter")
    expect(box.get_by_role("alert").filter(has_text="whole number from 1 to 512")).to_be_visible()
    lengths.fill("33")
    page.keyboard.press("Enter")
    expect(said(box)).to_contain_text("Paged: 3 blocks")


def test_each_speculative_reveal_is_predicted_and_many_rounds_come_to_p(visit: Any) -> None:
    box = figure(visit(), "speculative")
    for _ in range(4):
        kept = box.get_by_role("button", name="Kept", exact=True)
        if not kept.count():
            break
        kept.click()
        expect(box.locator("css=[data-key=outcome]")).to_contain_text("said")
    box.get_by_role("button", name="+10,000").click()
    expect(said(box)).to_contain_text("After 10,000 rounds the shares of the first word are within")
    box.get_by_role("button", name="Numbers as a table").click()
    shares = [float(row.get_by_role("cell").last.inner_text().split()[0]) for row in box.get_by_role("row").all()[1:]]
    assert shares == pytest.approx([50, 30, 20], abs=2)


def test_the_end_of_the_drafts_can_be_dragged_and_stepped(visit: Any) -> None:
    page = visit()
    box = figure(page, "draft")
    expect(box.locator("css=.figure")).to_contain_text("k = 6, the best")
    box.get_by_role("button", name="One drafted token more").focus()
    page.keyboard.press("Enter")
    expect(box.get_by_role("group", name="One round with k = 7")).to_be_visible()
    expect(box.get_by_role("button", name="One drafted token more")).to_be_focused()
    area = box.locator("css=[data-drag=k]").bounding_box()
    assert area is not None
    x, y = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 400, y, steps=4)
    page.mouse.up()
    expect(box.get_by_role("group", name="One round with k = 0")).to_be_visible()


def test_every_grip_is_a_slider_for_the_keyboard_and_keeps_the_focus(visit: Any) -> None:
    page = visit()
    for name in FIGURES:
        box = figure(page, name)
        for place in range(box.locator("css=.grip").count()):
            grip = box.locator("css=.grip").nth(place)
            grip.focus()
            before = grip.get_attribute("aria-valuetext")
            page.keyboard.press("Home")
            page.keyboard.press("ArrowRight")
            grip = box.locator("css=.grip").nth(place)
            expect(grip).to_be_focused()
            assert grip.get_attribute("aria-valuetext") != before
            ring = grip.locator("css=.reach").evaluate("e => getComputedStyle(e).strokeWidth")
            assert float(ring.removesuffix("px")) >= 2, f"{name}: the focus is not seen"


def pull(page: Page, grip: Locator, x: float, y: float = 0) -> None:
    """Drag a grip by so many pixels."""
    grip.scroll_into_view_if_needed()
    area = grip.locator("css=.reach").bounding_box()
    assert area is not None
    start = (area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + x, start[1] + y, steps=6)
    page.mouse.up()


def test_sequences_are_dragged_through_the_rack_and_open_cards_that_are_missing(visit: Any) -> None:
    page = visit("?sizing.sequences=8")
    box = figure(page, "sizing", shown=False)
    expect(box.locator("css=.figure")).to_contain_text("✗ Does not fit: 3 GPUs needed")
    end = box.get_by_role("slider", name="End of the KV caches")
    expect(box.locator("css=.figure svg").get_by_text("missing")).to_have_count(1)
    pull(page, end, -500, -41)  # back onto the second card
    expect(box.locator("css=.figure svg").get_by_text("missing")).to_have_count(0)
    expect(said(box)).to_contain_text("It fits on 2 × H100 SXM")


def test_the_border_of_a_group_is_dragged_and_all_groups_follow(browser: Browser, tmp_path: Path) -> None:
    points = sweep(np.random.default_rng(0).standard_normal((16, 512)).astype(np.float32), [8, 32, 128])
    page_file = write_page(tmp_path, ["draft"])
    groups = GroupExplorer(points)._repr_mimebundle_()[0]["text/html"]
    page_file.write_text(
        page_file.read_text("utf-8").replace("</main>", f"<section>{groups}</section></main>"), "utf-8"
    )
    with browser.new_context(viewport={"width": 1000, "height": 900}) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        box = figure(page, "groups", shown=False)
        expect(box.get_by_role("group", name="32 weights share a scale: 16 groups")).to_be_visible()
        pull(page, box.get_by_role("slider", name="End of the first group"), 90)
        expect(box.get_by_role("group", name="128 weights share a scale: 4 groups")).to_be_visible()
        expect(box.locator("css=.figure")).to_contain_text("4.13 bits a weight: 4 + 16 / 128")


def test_users_are_added_by_dragging_the_end_of_the_strip_until_memory_is_full(visit: Any) -> None:
    page = visit()
    box = figure(page, "batching")
    end = box.get_by_role("slider", name="Users at once")
    expect(box.locator("css=.rates")).to_contain_text("4,349 tokens/s together")
    pull(page, end, 100)
    dragged = int(box.get_by_role("spinbutton", name="Batch, exact value").input_value())
    assert 60 < dragged < 238
    pull(page, end, 600)
    expect(said(box)).to_contain_text("it does not fit")
    end.focus()
    page.keyboard.press("Home")
    expect(box.get_by_role("group", name="One decode step: weights 16.1 GB, 1 user")).to_be_visible()


def test_the_dots_under_the_roof_change_batch_and_prompt(visit: Any) -> None:
    page = visit()
    box = figure(page, "roofline")
    pull(page, box.get_by_role("slider", name="Decode dot"), 150)
    assert int(box.get_by_role("spinbutton", name="Batch, exact value").input_value()) > 20
    pull(page, box.get_by_role("slider", name="Prefill dot"), -300)
    assert int(box.get_by_role("spinbutton", name="Prompt to prefill, exact value").input_value()) < 500


def test_a_swipe_over_a_chart_scrolls_and_changes_no_guess(visit: Any) -> None:
    box = figure(visit(has_touch=True), "batching", shown=False)
    for handle in box.locator("css=[data-drag]").all():
        area = handle.bounding_box()
        assert area is not None
        assert area["height"] <= 50  # the point, not the whole height of the chart
    assert box.locator("css=.figure svg").evaluate("e => getComputedStyle(e).touchAction") == "auto"


def test_the_outlier_can_be_dragged(visit: Any) -> None:
    page = visit()
    box = figure(page, "quantization")
    area = box.locator("css=[data-drag=outlier]").bounding_box()
    assert area is not None
    x, y = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 70, steps=4)
    page.mouse.up()
    assert abs(float(box.get_by_role("spinbutton", name="The outlier").input_value())) < 3


def test_one_choice_of_gpu_changes_every_number_of_the_page_and_is_kept(visit: Any) -> None:
    page = visit()
    roofline, sizing = figure(page, "roofline"), figure(page, "sizing")
    expect(said(roofline)).to_contain_text("ridge 295")
    roofline.get_by_label("My GPU").select_option("h200")
    expect(said(roofline)).to_contain_text("ridge 206")
    expect(said(sizing)).to_contain_text("H200")
    expect(page.locator("[data-gpu-number]")).to_have_text("298.9")
    page.wait_for_url("**gpu=h200**")  # who gets the link sees the same numbers
    page.goto(page.url.partition("?")[0])
    expect(said(figure(page, "roofline", shown=False))).to_contain_text("ridge 206")
    linked = visit("?gpu=a100-80g")
    expect(said(figure(linked, "roofline"))).to_contain_text("ridge 153")
    assert linked.evaluate("localStorage['llm-course.gpu']") is None  # a link does not decide for the reader


def test_the_address_holds_the_state_and_a_broken_one_does_no_harm(visit: Any) -> None:
    page = visit("?roofline.batch=64&roofline.model=llama-2-7b&sizing.n_gpus=900&paged.lengths=5,x&draft.alpha=abc")
    box = figure(page, "roofline", shown=False)
    expect(said(box)).to_contain_text("Decode at batch 64")
    expect(box.get_by_label("Model")).to_have_value("llama-2-7b")
    expect(figure(page, "sizing", shown=False).get_by_role("spinbutton", name="GPUs, exact value")).to_have_value("16")
    expect(figure(page, "paged", shown=False).get_by_role("textbox")).to_have_value("37, 120, 64, 9")
    expect(figure(page, "draft", shown=False).get_by_role("spinbutton", name="Acceptance α")).to_have_value("0.8")
    box.get_by_role("spinbutton", name="Batch, exact value").fill("32")
    page.wait_for_url("**roofline.batch=32**")


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_is_wider_than_a_phone(visit: Any, width: int) -> None:
    page = visit(viewport={"width": width, "height": 800})
    for box in all_figures(page):
        if box.get_attribute("data-interactive") == "timeline":
            box.get_by_role("button", name="Play").click()  # what slides away stays inside
        inside = box.bounding_box()
        assert inside is not None
        assert inside["x"] + inside["width"] <= width
        for picture in box.locator("css=.figure svg").all():
            place = picture.bounding_box()
            assert place is not None
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width


EXTREMES = [
    ("roofline", "model=llama-3.2-1b&roofline.context=131072&roofline.batch=1"),
    ("roofline", "model=llama-3.2-1b&roofline.context=16000&roofline.batch=1024&roofline.prompt=1"),
    ("roofline", "model=llama-2-7b&roofline.context=64&roofline.prompt=32768&roofline.weight_bits=4"),
    ("sizing", "n_gpus=16&sizing.sequences=1024"),
    ("sizing", "n_gpus=16&sizing.sequences=1&sizing.group=128&sizing.weight_bits=4"),
    ("batching", "model=llama-3.2-1b&batching.context=131072&batching.batch=512"),
    ("batching", "model=llama-2-7b&batching.context=4096&batching.batch=1&batching.slo=100"),
    ("draft", "batch=1024&draft.alpha=1&draft.cost=0"),
    ("draft", "alpha=0&draft.cost=1"),
]


@pytest.mark.parametrize(("name", "query"), EXTREMES)
def test_labels_neither_collide_nor_leave_the_figure_at_320_px(visit: Any, name: str, query: str) -> None:
    page = visit(f"?{name}.{query}", viewport={"width": 320, "height": 800})
    faults = (
        figure(page, name, shown=False)
        .locator("css=.figure svg")
        .evaluate_all(
            """(pictures) => pictures.flatMap((picture) => {
            const texts = [...picture.querySelectorAll("text")];
            const all = texts.map((one) => [one.textContent, one.getBoundingClientRect()]);
            const frame = picture.getBoundingClientRect();
            const outside = all.filter(([, r]) => r.left < frame.left - 1 || r.right > frame.right + 1);
            const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4; // boxes of text have empty room above
            const pairs = all.flatMap(([one, a], i) => all.slice(i + 1)
                .filter(([, b]) => meet(a, b)).map(([other]) => `${one} | ${other}`));
            return [...outside.map(([words]) => `outside: ${words}`), ...pairs];
        })"""
        )
    )
    assert faults == []


def test_a_figure_answers_a_slider_within_50_ms(visit: Any) -> None:
    page = visit()
    for name, label in SLIDERS.items():
        slider = figure(page, name).get_by_role("slider", name=label)
        times = slider.evaluate(
            """async (slider) => {
                const times = [];
                for (let i = 0; i < 12; i++) {
                    await new Promise(requestAnimationFrame);
                    const [min, max] = [Number(slider.min), Number(slider.max)];
                    const start = performance.now();
                    slider.value = min + ((max - min) * ((5 * i) % 12)) / 12;
                    slider.dispatchEvent(new Event("input", { bubbles: true }));
                    slider.getRootNode().querySelector(".figure").getBoundingClientRect(); // laid out
                    times.push(performance.now() - start);
                }
                return times;
            }"""
        )
        assert statistics.median(times) < 50, name


def test_the_theme_of_the_page_is_followed_at_once(visit: Any) -> None:
    page = visit()
    group = figure(page, "draft").locator("css=[data-figure]")
    ground = "e => getComputedStyle(e).backgroundColor"
    assert group.evaluate(ground) == "rgb(255, 255, 255)"
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    expect(group).to_have_attribute("data-dark", "")
    assert group.evaluate(ground) == "rgb(20, 24, 29)"
    page.evaluate("document.documentElement.dataset.theme = 'light'; document.body.dataset.jpThemeLight = 'false'")
    expect(group).to_have_attribute("data-dark", "")  # JupyterLab's own word counts


def test_on_paper_there_is_the_table_and_no_control(visit: Any) -> None:
    page = visit(color_scheme="dark")
    box = figure(page, "draft")
    page.emulate_media(media="print")
    expect(box.get_by_role("table")).to_be_visible()
    expect(box.locator("css=input[type=range]").first).to_be_hidden()
    expect(box.get_by_role("button", name="Reset")).to_be_hidden()
    ground = box.locator("css=[data-figure]").evaluate("e => getComputedStyle(e).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_on_paper_a_figure_is_worked_out_though_its_question_is_not_answered(visit: Any) -> None:
    page = visit()
    box = figure(page, "draft", shown=False)
    hidden = box.locator("css=.numbers")
    expect(hidden).to_contain_text("After your guess.")
    page.emulate_media(media="print")
    expect(box.get_by_role("table")).to_be_visible()
    expect(hidden).not_to_contain_text("After your guess.")
    page.emulate_media(media="screen")
    expect(hidden).to_contain_text("After your guess.")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(hidden).not_to_contain_text("After your guess.")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(hidden).to_contain_text("After your guess.")


def test_without_scripts_the_worked_figure_and_its_table_are_there(visit: Any) -> None:
    page = visit(java_script_enabled=False, viewport={"width": 390, "height": 800})
    assert page.locator("body").bounding_box()["width"] <= 390  # type: ignore[index]
    box = page.locator("[data-interactive=sizing]")
    expect(box.get_by_role("img")).to_be_visible()
    expect(box.get_by_role("table")).to_contain_text("141.11")
    assert json.loads(box.get_attribute("data-state") or "")["n_gpus"] == 2


def test_who_wants_no_motion_gets_the_whole_timeline_at_once(visit: Any) -> None:
    box = figure(visit(reduced_motion="reduce"), "timeline")
    box.get_by_role("button", name="Play").click()
    expect(box.locator("css=.sweep").first).to_be_hidden()
