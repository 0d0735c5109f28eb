"""The built site, a server for it, and pages that can reach nothing else."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from site_tools import BOOK, ROOT, Visit, build_book, page_of, served


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Several test processes may ask for the site at once; the first one builds it."""
    import fcntl

    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def site() -> Path:
    """book/_build/html, built again if anything that it is made from has changed; or the site in $COURSE_SITE."""
    if named := os.environ.get("COURSE_SITE"):
        return Path(named)
    with one_at_a_time(ROOT / ".pytest_cache" / "book.lock"):
        done = build_book(ROOT, "--if-changed", "--lessons", str(ROOT / ".pytest_cache" / "lessons"))
    if done.returncode:
        pytest.fail(f"the book does not build:\n{done.stderr}", pytrace=False)
    return BOOK / "_build" / "html"


@pytest.fixture(scope="session")
def page_names(site: Path) -> list[str]:
    """The site's pages, without those that only lead from an old address to a new one."""
    files = [file for file in site.rglob("*.html") if "_static" not in file.parts]
    own = [file for file in files if 'http-equiv="refresh"' not in file.read_text("utf-8")]
    return sorted(file.relative_to(site).as_posix() for file in own)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Address of the site on a plain static server, below a sub-path as a project's pages often are."""
    with served(site.parent) as server:
        yield f"{server}{site.name}/"


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Visit]]:
    """visit("index.html", viewport=...) opens a page of the site; any request to another host is cut and noted."""
    with ExitStack() as open_pages:

        def open_page(name: str, **options: Any) -> Visit:
            seen = open_pages.enter_context(page_of(browser, **options))
            seen.page.goto(address + name, wait_until="networkidle")
            return seen

        yield open_page
