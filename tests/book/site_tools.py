"""Helpers of the book's tests: build it, serve a folder, open a page and note what goes wrong on it."""

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from playwright.sync_api import Browser, Page, Route

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
BUILD_LIMIT = 600  # seconds
PATIENCE = 90_000  # milliseconds: what is a blink on a quiet machine may take its time where all cores are busy


def build_book(root: Path = ROOT, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the build script on the book and the notebooks below `root`."""
    command = [sys.executable, str(BOOK / "build.py"), "--root", str(root), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=BUILD_LIMIT)


def n_cases(exercise: str) -> int:
    """All that a practice exercise tries, samples and refused inputs included."""
    found = yaml.safe_load((ROOT / "exercises" / "practice" / exercise / "exercise.yml").read_text("utf-8"))
    return sum(len(found.get(kind, [])) for kind in ("samples", "cases", "refused"))


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a plain static server for a folder."""
    handler = functools.partial(_QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@dataclass
class Visit:
    """An open page and everything that went wrong while it was open."""

    page: Page
    faults: list[str] = field(default_factory=list)


@contextmanager
def page_of(browser: Browser, **options: Any) -> Iterator[Visit]:
    """A page in a context of its own: any request to another host is cut and noted, and so is every error.

    Nothing else is asked of the network. A lesson asks its own server for the discussion, which a plain static server
    does not have: that one answer is expected.
    """
    context = browser.new_context(**{"service_workers": "block", **options})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    seen = Visit(page)
    note = seen.faults.append

    def guard(route: Route) -> None:
        if urlsplit(route.request.url).hostname in ("127.0.0.1", "localhost"):
            route.continue_()
        else:
            note(f"asked another host for {route.request.url}")
            route.abort()

    context.route("**/*", guard)
    page.on(
        "console",
        lambda message: (
            note(f"console: {message.text}")
            if message.type == "error" and "/isso/" not in message.location.get("url", "")
            else None
        ),
    )
    page.on("pageerror", lambda error: note(f"page error: {error}"))
    page.on(
        "response",
        lambda answer: (
            note(f"{answer.status} for {answer.url}") if answer.status >= 400 and "/isso/" not in answer.url else None
        ),
    )
    try:
        yield seen
    finally:
        context.close()
