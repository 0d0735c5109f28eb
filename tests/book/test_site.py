"""The site as a reader meets it: in a browser that can reach nothing but the site's own server."""

import gzip
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from site_tools import ROOT, Visit, page_of, served

LESSON = "notebooks/04a_number_formats.html"
Opener = Callable[..., Visit]

pytestmark = pytest.mark.browser


def test_a_figure_keeps_its_place_free_before_it_is_loaded(visit: Opener) -> None:
    page = visit(LESSON).page
    unloaded = page.locator("main img").evaluate_all("all => all.filter((e) => !e.complete).map((e) => e.clientHeight)")
    assert unloaded  # the lesson is long: its last figures are out of sight
    assert min(unloaded) > 100  # pixels


def test_formulas_are_rendered_for_the_eye_and_for_screen_readers(visit: Opener) -> None:
    page = visit("formulas.html").page
    expect(page.locator(".katex .mfrac").first).to_be_visible()
    expect(page.locator(".katex-mathml math").first).to_be_attached()
    assert page.evaluate("document.fonts.check('16px KaTeX_Main') && document.fonts.check('16px KaTeX_Math')")


@pytest.mark.parametrize("way", ["the search page", "the search dialog"])
def test_search_finds_absmax_in_the_lesson_while_the_reader_types(visit: Opener, way: str) -> None:
    page = visit("search.html" if way == "the search page" else "index.html").page
    if way == "the search dialog":
        page.keyboard.press("Control+k")
    page.locator("#search-field").press_sequentially("absmax")
    results = page.locator(".search-results li")
    lesson = results.filter(has_text="in Quantization 1").first
    expect(lesson).to_contain_text("absmax", ignore_case=True)
    expect(lesson.locator("mark").first).to_be_visible()
    assert "\\" not in lesson.inner_text()  # each formula once, without its LaTeX
    lesson.locator("a").click()
    page.wait_for_url(f"**/{LESSON}*")
    assert page.locator("article mark, article .highlighted").count() == 0  # nothing of the search stays behind


@pytest.mark.parametrize(
    ("query", "page_name"),
    [("208.6", "formulas.html"), ("8,030,261,248", "formulas.html"), ("8030261248", "formulas.html")],
)
def test_search_finds_numbers(visit: Opener, query: str, page_name: str) -> None:
    page = visit(f"search.html?q={query}").page
    expect(page.locator(f".search-results a[href*='{page_name}']").first).to_be_visible()


def test_search_can_be_used_by_keyboard_alone(visit: Opener) -> None:
    page = visit("search.html").page
    page.keyboard.type("paged cache")
    expect(page.locator(".search-results a").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".search-results a").first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "search.html" not in address)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_light_or_dark_as_the_readers_system_is(visit: Opener, scheme: str) -> None:
    page = visit("index.html", color_scheme=scheme).page
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(int(part) for part in re.findall(r"\d+", ground)[:3]) < 60) == (scheme == "dark")


def test_the_lesson_prints_with_its_title_and_its_figures(visit: Opener) -> None:
    page = visit(LESSON).page
    page.emulate_media(media="print")
    expect(page.locator("article h1")).to_be_visible()
    expect(page.locator("article img").first).to_be_visible()
    for screen_only in ("#pst-primary-sidebar", ".prev-next-footer", ".article-header-buttons"):
        expect(page.locator(screen_only)).to_be_hidden()


def test_the_download_is_the_notebook_of_the_repository(visit: Opener) -> None:
    page = visit(LESSON).page
    link = page.locator(".bd-footer-content a", has_text="notebooks/04a_number_formats.ipynb")
    answer = page.request.get(link.evaluate("e => e.href"))
    assert answer.body() == (ROOT / "notebooks" / "04a_number_formats.ipynb").read_bytes()


def test_the_home_page_prints_no_answer_of_the_opening_questions(visit: Opener) -> None:
    text = visit("index.html").page.locator("article").inner_text()
    for number in ("8,030,261,248", "16.1 GB", "3.35 TB/s"):
        assert number in text
    for answer in ("208.6", "209", "417", "4.79", "64.9"):
        assert answer not in text


def lessons(site: Path) -> list[str]:
    return sorted(f"notebooks/{file.name}" for file in (site / "notebooks").glob("*.html"))


def test_a_lesson_weighs_at_most_200_kb_before_the_first_interaction(visit: Opener, site: Path, address: str) -> None:
    heaviest = {}
    for lesson in lessons(site):
        page = visit(lesson).page
        names = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
        files = {urlsplit(name).path for name in [address + lesson, *names]}
        prefix = urlsplit(address).path
        weights = {name: len(gzip.compress((site / name.removeprefix(prefix)).read_bytes(), 6)) for name in files}
        if sum(weights.values()) > 200_000:
            heaviest[lesson] = sorted(weights.items(), key=lambda item: -item[1])
    assert heaviest == {}


def test_a_choice_of_gpu_changes_every_number_that_follows_it_and_is_kept(visit: Opener) -> None:
    page = visit("formulas.html").page
    cell = page.locator("table", has_text="one step, batch 1").get_by_role("row", name="one step, batch 1")
    expect(cell).to_contain_text("4.794 ms")
    page.get_by_label("My GPU").select_option("h200")
    expect(cell).to_contain_text("3.346 ms")
    page.reload()
    expect(cell).to_contain_text("3.346 ms")


def test_a_policy_on_every_page_allows_the_site_alone(site: Path, page_names: list[str]) -> None:
    for name in page_names:
        html = (site / name).read_text("utf-8")
        policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', html)
        assert policy, name
        assert html.index(policy[0]) < html.index("<script")
        assert "http" not in policy[1]
        assert "'unsafe-eval'" not in policy[1]
        scripts = re.search(r"script-src ([^;]+)", policy[1])
        assert scripts
        assert "'unsafe-inline'" not in scripts[1]


def test_the_policy_stops_a_script_that_is_not_of_the_page(visit: Opener) -> None:
    page = visit("index.html").page
    expect(page.locator("article h1")).to_be_visible()
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.bad = 1\">')")
    page.evaluate("document.head.append(Object.assign(document.createElement('script'), { text: 'window.bad = 2' }))")
    page.wait_for_timeout(200)
    assert page.evaluate("window.bad") is None


@pytest.mark.parametrize("name", ["index.html", "search.html"])
def test_letters_typed_before_the_search_script_has_come_are_kept_and_answered(
    browser: Browser, address: str, name: str
) -> None:
    with page_of(browser) as seen:
        page = seen.page
        held = []
        page.route("**/search-*.js", lambda route: held.append(route))
        page.goto(address + name)
        if name == "index.html":
            page.keyboard.press("Control+k")
        page.keyboard.type("absmax")
        expect(page.locator("#search-field")).to_have_value("absmax")
        page.wait_for_function("() => true")
        assert held
        assert page.locator(".search-results").count() == 0
        for route in held:
            route.continue_()
        expect(page.locator(".search-results li").first).to_be_visible()
        expect(page.locator("#search-field")).to_have_value("absmax")
        assert seen.faults == []


def test_the_texts_of_the_search_come_with_the_first_letter(visit: Opener) -> None:
    page = visit("index.html").page
    loaded = "performance.getEntriesByType('resource').filter((one) => one.name.endsWith('searchtext.json')).length"
    page.keyboard.press("Control+k")
    expect(page.locator("#search-field")).to_be_focused()
    assert page.evaluate(loaded) == 0
    page.keyboard.type("a")
    expect(page.locator(".search-results li").first).to_be_visible()
    assert page.evaluate(loaded) == 1


def test_every_link_within_the_site_leads_somewhere(site: Path, page_names: list[str]) -> None:
    ids = {}
    links = []
    for name in page_names:
        html = (site / name).read_text("utf-8")
        ids[name] = set(re.findall(r'\b(?:id|name)="([^"]+)"', html))
        links += [(name, unescape(link)) for link in re.findall(r'<a\b[^>]*?\bhref="([^"]*)"', html)]
    broken = []
    for name, link in links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link == "#":
            continue
        target = ((site / name).parent / unquote(parts.path)).resolve() if parts.path else site / name
        page = target.relative_to(site.resolve()).as_posix() if target.is_relative_to(site.resolve()) else None
        if not target.is_file() or (parts.fragment and page in ids and unquote(parts.fragment) not in ids[page]):
            broken.append((name, link))
    assert len(links) > 500
    assert broken == []


def test_every_link_to_another_site_is_https(site: Path, page_names: list[str]) -> None:
    links = {
        link
        for name in page_names
        for link in re.findall(r'<a\b[^>]*?\bhref="(\w+:[^"]*)"', (site / name).read_text("utf-8"))
    }
    plain = {link for link in links if not link.startswith(("https://", "mailto:", "http://localhost:8888/lab/"))}
    assert plain == set()


def test_a_visited_book_is_read_without_a_network(browser: Browser, address: str) -> None:
    with page_of(browser, service_workers="allow") as seen:
        page = seen.page
        page.goto(address + "index.html", wait_until="networkidle")
        page.mouse.move(600, 400)
        page.mouse.wheel(0, 300)  # the first interaction
        page.evaluate("async () => (await navigator.serviceWorker.ready).active.state")
        page.evaluate(
            """async () => {
                for (const name of ["search.html", "notebooks/01_prefill_and_decode.html"])
                    while (!(await caches.match(new URL(name, location.href), { ignoreSearch: true })))
                        await new Promise((again) => setTimeout(again, 100));
            }"""
        )
        seen.faults.clear()
        page.context.set_offline(True)
        page.goto(address + "notebooks/01_prefill_and_decode.html")
        expect(page.locator("article h1")).to_contain_text("Prefill and decode")
        figure = page.locator("[data-interactive=roofline][data-ready]")
        page.locator("[data-interactive=roofline]").scroll_into_view_if_needed()
        expect(figure).to_be_attached()
        page.goto(address + "formulas.html")
        expect(page.locator(".katex .mfrac").first).to_be_visible()


def test_two_builds_under_one_origin_keep_their_caches_apart(browser: Browser, site: Path, tmp_path: Path) -> None:
    """A service worker deletes what older builds left, and nothing of a build in another folder."""
    for name in ("one", "one/two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "index.html").write_text("<title>x</title><h1>x</h1>")
        (folder / "404.html").write_text("<title>x</title>")
        worker = (site / "sw.js").read_text("utf-8")
        worker = re.sub(r"JSON\.parse\(`\[.*?\]`\)", '["index.html"]', worker, count=1, flags=re.S)
        (folder / "sw.js").write_text(worker)
    with served(tmp_path) as address, page_of(browser, service_workers="allow") as seen:
        for name in ("one", "one/two", "one"):
            seen.page.goto(f"{address}{name}/index.html")
            seen.page.evaluate(
                """async () => {
                    await navigator.serviceWorker.register("sw.js");
                    const { active } = await navigator.serviceWorker.ready;
                    while (active.state !== "activated") await new Promise((again) => setTimeout(again, 50));
                }"""
            )
        folders = [name.split(" ")[1] for name in seen.page.evaluate("caches.keys()")]
        assert sorted(set(folders)) == ["/one/", "/one/two/"]


NO_STORAGE = """Object.defineProperty(window, "localStorage", {
    configurable: true, get() { throw new DOMException("denied", "SecurityError"); } });"""


def test_without_storage_search_menu_and_theme_work_and_the_page_says_once_that_nothing_is_kept(
    browser: Browser, address: str
) -> None:
    with page_of(browser, viewport={"width": 390, "height": 844}, color_scheme="light") as seen:
        page = seen.page
        page.add_init_script(NO_STORAGE)
        page.goto(address + "practice/01_groupwise_int8.html")
        note = page.get_by_role("note").filter(has_text="does not let the site keep anything")
        expect(note).to_have_count(1)
        page.locator(".theme-switch-button").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.locator(".primary-toggle").click()
        menu = page.locator("dialog#pst-primary-sidebar-modal")
        expect(menu.get_by_role("link", name="2 · Batching")).to_be_visible()
        page.keyboard.press("Escape")
        expect(menu).to_be_hidden()
        page.keyboard.press("Control+k")
        expect(page.locator("#search-field")).to_be_focused()
        page.keyboard.type("absmax")
        expect(page.locator(".search-results li").first).to_be_visible()
        assert seen.faults == []


def test_an_address_that_leads_nowhere_shows_a_page_that_leads_back(browser: Browser, address: str) -> None:
    with page_of(browser) as seen:
        page = seen.page
        # As GitHub Pages and others do, the page is shown at the address that was asked for.
        text = page.request.get(address + "404.html").text()
        lost = f"{address}notebooks/gone/deeper.html"
        page.route(lost, lambda route: route.fulfill(status=404, content_type="text/html", body=text))
        page.goto(lost)
        link = page.get_by_role("link", name="Glossary")
        expect(link).to_have_attribute("href", f"{address}glossary.html")  # the page has found the site's folder
        link.click()
        expect(page.locator("article h1")).to_contain_text("Glossary")


def test_open_in_jupyterlab_follows_the_address_that_the_reader_gives(visit: Opener) -> None:
    page = visit(LESSON).page
    link = page.get_by_role("link", name="Open in JupyterLab")
    expect(link).to_have_attribute("href", "http://localhost:8888/lab/tree/notebooks/04a_number_formats.ipynb")
    page.get_by_text("It runs elsewhere").click()
    page.get_by_label("The address that JupyterLab shows").fill("https://hub.example.edu/user/ada/lab/tree/x.ipynb")
    page.keyboard.press("Tab")
    hub = "https://hub.example.edu/user/ada/lab/tree/notebooks/04a_number_formats.ipynb"
    expect(link).to_have_attribute("href", hub)
    page.reload()
    expect(link).to_have_attribute("href", hub)


@pytest.mark.parametrize("width", [1280, 390])
def test_no_code_is_cut_off_and_wide_outputs_show_that_they_scroll(visit: Opener, site: Path, width: int) -> None:
    cut, hidden = {}, {}
    for lesson in lessons(site):
        page = visit(lesson, viewport={"width": width, "height": 900}).page
        for box in page.locator(".cell_input details").all():
            box.evaluate("e => { e.open = true; }")
        cut[lesson] = page.locator(".cell_input pre").evaluate_all(
            "all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent.slice(0, 60))"
        )
        hidden[lesson] = page.locator(".cell_output pre").evaluate_all(
            "all => all.filter((e) => e.scrollWidth > e.clientWidth && e.offsetHeight - e.clientHeight < 5).length"
        )
    assert {name: lines for name, lines in cut.items() if lines} == {}
    assert {name: n for name, n in hidden.items() if n} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "practice/01_groupwise_int8.html"])
def test_what_has_the_focus_shows_it(visit: Opener, name: str, scheme: str) -> None:
    page = visit(name, color_scheme=scheme).page
    unseen = []
    for _ in range(45):
        page.keyboard.press("Tab")
        here, width = page.evaluate(
            """() => {
                const [one, style] = [document.activeElement, getComputedStyle(document.activeElement)];
                const editor = one.closest(".cm-editor");
                const shown = editor ? getComputedStyle(editor) : style;
                return [one.outerHTML.slice(0, 80), shown.outlineStyle === "none" ? 0 : parseFloat(shown.outlineWidth)];
            }"""
        )
        if width < 2 and not here.startswith("<body"):
            unseen.append(here)
    assert unseen == []


SHIFT = """() => new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(sum), 1500);
})"""


@pytest.mark.parametrize(
    "name", ["index.html", "progress.html", "review.html", "practice/01_groupwise_int8.html", LESSON]
)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_while_a_page_loads(visit: Opener, name: str, width: int) -> None:
    page = visit(name, viewport={"width": width, "height": 844}).page
    assert page.evaluate(SHIFT) <= 0.02


def test_every_page_says_in_its_head_what_it_is(site: Path, page_names: list[str]) -> None:
    told: dict[str, list[str]] = {}
    for name in page_names:
        if name in ("404.html", "search.html"):
            continue
        html = (site / name).read_text("utf-8")
        (description,) = re.findall(r'<meta name="description" content="([^"]+)"', html)
        assert re.search(r'<meta property="og:title" content="[^"]+"', html), name
        told.setdefault(unescape(description), []).append(name)
    assert {text: names for text, names in told.items() if len(names) > 2 or len(text) < 20} == {}


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


def test_the_old_address_of_lesson_4_leads_to_its_first_part(visit: Opener) -> None:
    page = visit("notebooks/04_quantization.html").page
    page.wait_for_url(f"**/{LESSON}")


def test_a_model_answer_opens_once_an_answer_is_written_and_the_answer_stays(visit: Opener) -> None:
    page = visit("problem_sets.html").page
    question = page.locator('form[data-written="ps5_sizing/the-recommendation"]')
    model = page.locator('form[data-written="ps5_sizing/the-recommendation"] ~ .model-answer').first
    box = page.get_by_label("Your answer to ps5_sizing/the-recommendation")
    button = question.get_by_role("button", name="Show the model answer")
    expect(model).to_be_hidden()
    box.fill("Two H100.")
    button.click()
    expect(question.get_by_role("status")).to_have_text("Write at least 10 words first.")
    expect(model).to_be_hidden()
    box.fill("Rent two H100 with weights of 8 bits and let the server draft.")
    button.click()
    expect(model).to_be_visible()
    expect(model).to_contain_text("Rubric.")
    page.reload()
    expect(box).to_have_value("Rent two H100 with weights of 8 bits and let the server draft.")
    expect(model).to_be_hidden()


def test_search_does_not_look_through_model_answers(site: Path) -> None:
    said = "keep the promise for up to 33 doctors"
    assert said in (site / "problem_sets.html").read_text("utf-8")
    assert said not in (site / "searchtext.json").read_text("utf-8")
