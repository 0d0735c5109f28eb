"""How fast the built site is for a reader: medians of several runs in Chromium, over a throttled link and in practice.

    python book/measure.py             # needs the built site, playwright and a Chromium
    python book/measure.py --runs 3

First text: from the address to the first painted text of a lesson, over 10 Mb/s with 40 ms of delay each way, from
`serve.py`. Practice, cold: a fresh browser, from the click on "Run the samples" to the first output, Python loaded from
this machine; warm: the same click once Python is there. Measure on a quiet machine.
"""

import argparse
import runpy
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import waitress
from playwright.sync_api import Browser, expect, sync_playwright
from serve import Files, below

HERE = Path(__file__).resolve().parent
LESSON = "notebooks/01_prefill_and_decode.html"
LIMITS = {"first text": 1.5, "practice, cold": 12.0, "practice, warm": 2.0}  # seconds, what the course promises
LINK = {"offline": False, "latency": 40, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}  # ms, bytes/s


def serve(site: Path) -> str:
    """The address of the site on a server that lives as long as this process."""
    server: Any = waitress.create_server(below("", Files(site), None), host="127.0.0.1", port=0)
    threading.Thread(target=server.run, daemon=True).start()
    return f"http://127.0.0.1:{server.effective_port}/"


def first_text(browser: Browser, address: str) -> float:
    """Seconds until a lesson's text is painted, nothing of it kept from before."""
    context = browser.new_context()
    page = context.new_page()
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", LINK)
    page.goto(address + LESSON, wait_until="load")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    return painted / 1000


def practice(browser: Browser, address: str) -> tuple[float, float]:
    """Seconds to the first output: with Python to be loaded, and once it is there."""
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.goto(address + "practice/01_groupwise_int8.html")
    expect(page.locator(".practice-editor[data-ready]")).to_be_attached(timeout=60_000)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        page.get_by_role("button", name="Run the samples").click()
        expect(page.locator(".practice-cases li").first).to_be_visible(timeout=120_000)
        times.append(time.perf_counter() - start)
        expect(page.get_by_role("button", name="Stop")).to_be_disabled(timeout=60_000)
    context.close()
    return times[0], times[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, default=HERE / "_build" / "html")
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    chromium = runpy.run_path(str(HERE.parent / "scripts" / "setup.py"))["find_browser"]()
    address = serve(chosen.site)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        first_text(browser, address)  # the server compresses each file once
        measured: dict[str, list[float]] = {name: [] for name in LIMITS}
        for _ in range(chosen.runs):
            measured["first text"].append(first_text(browser, address))
            for name, took in zip(("practice, cold", "practice, warm"), practice(browser, address), strict=True):
                measured[name].append(took)
        browser.close()
    late = False
    for name, seconds in measured.items():
        median = statistics.median(seconds)
        late |= median > LIMITS[name]
        print(f"{name}: {median:.2f} s (of {min(seconds):.2f} to {max(seconds):.2f}; promised: {LIMITS[name]:g})")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
