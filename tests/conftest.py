"""What all tests share: few threads when tests run side by side, and one browser in each test process."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]

# The same examples in every run, so that a run tells of the code alone; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("course", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "course"))

# Under xdist each worker is a process of its own; torch would start a full set of threads in every one.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser that the set-up finds. Playwright's synchronous interface starts once in a process: here."""
    from playwright.sync_api import expect, sync_playwright

    found = runpy.run_path(str(ROOT / "scripts" / "setup.py"))["find_browser"]()
    if found is None:
        pytest.fail(
            "the pages are tested in Chromium, and there is none: `apt-get install chromium` on Debian or Ubuntu, "
            "or `python -m playwright install chromium`",
            pytrace=False,
        )
    expect.set_options(timeout=30_000)
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", *quiet]
        chromium = playwright.chromium.launch(executable_path=found, args=arguments)
        yield chromium
        chromium.close()
