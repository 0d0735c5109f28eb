"""`make site`: the files as they should be sent, and a discussion with moderation and a limit against spam."""

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from site_tools import BOOK, page_of

SERVE = BOOK / "serve.py"
LESSON = "notebooks/01_prefill_and_decode.html"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[str, dict[str, str], bytes]]:
    """files("/name", header=value) asks the server's file part and returns (status, headers, body)."""
    monkeypatch.syspath_prepend(BOOK)
    from serve import Files, below

    site = tmp_path / "site"
    (site / "_static").mkdir(parents=True)
    (site / "index.html").write_text("<h1>Home</h1>" * 100)
    (site / "_static" / "a.mjs").write_text("export default 1;")
    (site / "_static" / "python.wasm").write_bytes(b"\0asm" * 100)
    (tmp_path / "secret.txt").write_text("not of the site")
    application = below("/course", Files(site), None)

    def ask(path: str, method: str = "GET", **headers: str) -> tuple[str, dict[str, str], bytes]:
        told: dict[str, Any] = {}
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, **{f"HTTP_{key}": v for key, v in headers.items()}}
        body = b"".join(application(environ, lambda status, head: told.update(status=status, head=dict(head))))
        return told["status"], told["head"], body

    return ask


def test_pages_are_sent_compressed_to_those_who_can_read_it(files: Any) -> None:
    status, head, body = files("/course/", ACCEPT_ENCODING="gzip, br")
    assert (status, head["Content-Type"], head["Content-Encoding"]) == ("200 OK", "text/html; charset=utf-8", "gzip")
    assert gzip.decompress(body) == b"<h1>Home</h1>" * 100
    assert len(body) == int(head["Content-Length"]) < 200
    assert "Content-Encoding" not in files("/course/index.html")[1]


def test_an_address_that_leads_nowhere_gets_the_sites_own_page(files: Any, tmp_path: Path) -> None:
    (tmp_path / "site" / "404.html").write_text("<h1>There is no such page here</h1>")
    status, head, body = files("/course/notebooks/gone.html")
    assert (status, head["Content-Type"]) == ("404 Not Found", "text/html; charset=utf-8")
    assert body == b"<h1>There is no such page here</h1>"


@pytest.mark.parametrize(
    ("name", "kind"), [("a.mjs", "text/javascript; charset=utf-8"), ("python.wasm", "application/wasm")]
)
def test_scripts_and_webassembly_have_the_types_that_browsers_insist_on(files: Any, name: str, kind: str) -> None:
    assert files(f"/course/_static/{name}")[1]["Content-Type"] == kind


def test_what_has_not_changed_is_not_sent_again(files: Any) -> None:
    tag = files("/course/")[1]["ETag"]
    status, _, body = files("/course/", IF_NONE_MATCH=tag)
    assert (status, body) == ("304 Not Modified", b"")


@pytest.mark.parametrize(
    "path", ["/course/../secret.txt", "/course/%2e%2e/secret.txt", "/course//etc/passwd", "/nothing"]
)
def test_nothing_outside_the_site_is_ever_sent(files: Any, path: str) -> None:
    status, _, body = files(path)
    assert status == "404 Not Found"
    assert b"not of the site" not in body


def test_other_methods_are_refused_and_the_bare_prefix_leads_to_the_site(files: Any) -> None:
    assert files("/course/", method="POST")[0] == "405 Method Not Allowed"
    status, head, _ = files("/course")
    assert (status, head["Location"]) == ("308 Permanent Redirect", "/course/")


def test_a_folder_without_a_site_is_refused_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SERVE, "--site", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == f"serve: {tmp_path} holds no site: `make book` builds it"


# --- the discussion


@contextmanager
def served(site: Path, database: Path, *options: str) -> Iterator[str]:
    """The address of the site below /course on a server of its own, whose discussion is moderated by `secret`."""
    with subprocess.Popen(
        [sys.executable, "-u", SERVE, *("--site", site, "--database", database, "--prefix", "course", *options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"COURSE_MODERATOR": "secret"},
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found, line
            yield found[0].replace("127.0.0.1", "localhost")
        finally:
            server.terminate()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def open_thread(page: Page, address: str) -> None:
    page.goto(address + LESSON)
    for _ in range(100):
        page.locator(".discussion").scroll_into_view_if_needed()  # figures that come to life push it down again
        if page.locator("#isso-thread > .isso-postbox").count():
            return
        page.wait_for_timeout(300)
    pytest.fail("the thread does not show")


def post(page: Page, text: str, box: str = "#isso-thread > .isso-postbox") -> None:
    place = page.locator(box)
    place.get_by_label("Your question or answer").fill(text)
    place.get_by_label("Name").fill("A reader")
    place.get_by_role("button", name="Submit").click()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_question_waits_for_a_moderator_is_answered_and_a_flood_is_refused(
    browser: Browser, site: Path, tmp_path: Path
) -> None:
    port = free_port()
    with (
        served(site, tmp_path / "comments.db", "--port", str(port), "--per-minute", "2") as address,
        page_of(browser) as asker,
        page_of(browser) as moderator,
        page_of(browser) as other,
    ):
        open_thread(asker.page, address)
        post(asker.page, "Why is `decode` slow? <script>window.bad = 1</script>")
        waiting = asker.page.locator("#isso-root .isso-comment").first
        expect(waiting).to_contain_text("Waiting for a moderator")
        expect(waiting.locator("code")).to_have_text("decode")
        assert asker.page.evaluate("window.bad") is None

        open_thread(other.page, address)
        other.page.wait_for_timeout(500)
        expect(other.page.locator("#isso-root .isso-comment")).to_have_count(0)

        moderator.page.goto(address + "isso/admin/")
        moderator.page.locator("input[type=password]").fill("secret")
        moderator.page.keyboard.press("Enter")
        moderator.page.get_by_text("Validate").first.click()
        expect(moderator.page.get_by_text("Why is").first).to_be_hidden()

        open_thread(other.page, address)
        question = other.page.locator("#isso-root > .isso-comment").first
        expect(question).to_contain_text("Why is decode slow?")
        question.get_by_text("Reply").click()
        post(other.page, "Each token reads every weight.", "#isso-root .isso-comment .isso-postbox")
        expect(other.page.locator("#isso-root .isso-comment .isso-follow-up .isso-comment").first).to_contain_text(
            "Each token reads every weight."
        )

        answers = []
        for number in range(4):  # one after another: at least three fall into one minute
            with other.page.expect_response(lambda answer: "/isso/new" in answer.url) as answer:
                post(other.page, f"One more, {number}.")
            answers.append(answer.value.status)
        assert 403 in answers[:3]
        refused = answers.index(403)
        expect(other.page.locator("#isso-root .isso-comment", has_text=f"One more, {refused}.")).to_have_count(0)


@pytest.mark.browser
def test_a_page_whose_server_does_not_answer_says_so_in_one_line(browser: Browser, address: str) -> None:
    with page_of(browser) as seen:
        seen.page.goto(address + LESSON)
        place = seen.page.locator(".discussion-place")
        for _ in range(100):
            place.scroll_into_view_if_needed()
            if "cannot" in place.inner_text():
                break
            seen.page.wait_for_timeout(300)
        assert place.inner_text() == "The discussion cannot be reached from here. Everything else works without it."
        assert seen.faults == []


@pytest.mark.browser
def test_nothing_of_the_discussion_is_asked_for_before_the_reader_comes_near(browser: Browser, address: str) -> None:
    with page_of(browser) as seen:
        asked: list[str] = []
        seen.page.on("request", lambda request: asked.append(request.url))
        seen.page.goto(address + LESSON, wait_until="networkidle")
        assert [url for url in asked if "isso" in url or "discussion" in url or "giscus" in url] == []
