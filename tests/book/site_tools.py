"""What the tests of the book share: how to build it, how to find a browser, what an open page is."""

import runpy
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
BUILD_LIMIT = 600  # seconds


def build_book(root: Path = ROOT, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the build script on the book and the notebooks below `root`."""
    command = [sys.executable, str(BOOK / "build.py"), "--root", str(root), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=BUILD_LIMIT)


def chromium_path() -> str:
    """The browser that the set-up finds, or a failure that says what to do."""
    found = runpy.run_path(str(ROOT / "scripts" / "setup.py"))["find_browser"]()
    if found is None:
        pytest.fail(
            "the site is tested in Chromium, and there is none: `apt-get install chromium` on Debian or Ubuntu, "
            "or `python -m playwright install chromium`",
            pytrace=False,
        )
    return found


@dataclass
class Visit:
    """An open page and everything that went wrong while it was open."""

    page: Page
    faults: list[str] = field(default_factory=list)
