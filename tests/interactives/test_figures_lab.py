"""A figure in JupyterLab, as a learner meets it: it answers once its cell was run, and it lives in a saved notebook."""

import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.browser

QUESTIONS = 'from interactives import OpeningQuestions\nOpeningQuestions("01_prefill_and_decode")'
CELL = "from interactives import RooflineExplorer\nfigure = RooflineExplorer(batch=32)\nfigure"


def notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for i, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small course: three notebooks, the names of two lessons, and a folder that learners have no use for."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "figures.ipynb").write_text(notebook(CELL, "print('batch is', figure.batch)"))
    (folder / "saved.ipynb").write_text(notebook(QUESTIONS, CELL))
    lesson = json.loads(notebook(PREDICTION))
    lesson["cells"].append({"cell_type": "markdown", "id": "why", "metadata": {}, "source": EXPLANATION})
    (folder / "lesson.ipynb").write_text(json.dumps(lesson))
    for name in ("notebooks", "tests", "work"):
        (folder / name).mkdir()
    for name in ("03_kv_cache", "01_prefill_and_decode", "draft"):
        (folder / "notebooks" / f"{name}.ipynb").write_text(notebook())
    (folder / "work" / "ps1.ipynb").write_text(notebook())
    return folder


@pytest.fixture(scope="module")
def lab(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a JupyterLab as `make lab` starts it for a learner, with the extension where setup puts it."""
    home = tmp_path_factory.mktemp("home")
    runpy.run_path(str(ROOT / "scripts" / "setup.py"))["add_lab_extension"](home / "share")
    settings = {
        "JUPYTER_CONFIG_DIR": f"{home}/config",
        "JUPYTER_CONFIG_PATH": str(ROOT / "interactives" / "lab" / "learner"),
        "JUPYTER_PATH": f"{home}/share",
        "JUPYTERLAB_WORKSPACES_DIR": f"{home}/workspaces",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.root_dir={folder}"]
    options = ["--IdentityProvider.token=", "--ServerApp.port=0", "--LabApp.news_url=None"]
    server = subprocess.Popen(
        [*command, *options, "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
        env=os.environ | settings | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        lines = iter(server.stderr.readline, "")
        yield next(found[0] for line in lines if (found := re.search(r"http://(localhost|127\.0\.0\.1):\d+", line)))
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:  # a kernel keeps it waiting
            server.kill()


def opened(context: BrowserContext, address: str) -> Page:
    """A notebook whose kernel is ready and whose first cell is chosen, without the tabs of the tests before."""
    page = context.new_page()
    page.goto(f"{address}?reset")
    page.get_by_text("| Idle").wait_for(timeout=150_000)
    page.locator(".jp-CodeCell").first.click()
    return page


def test_the_first_figure_shows_within_3_seconds_of_running_its_cell_and_its_slider_reaches_the_kernel(
    lab: str,
    browser: Browser,
) -> None:
    with browser.new_context(viewport={"width": 1200, "height": 1800}) as context:
        page = opened(context, f"{lab}/lab/tree/figures.ipynb")

        start = time.perf_counter()
        page.keyboard.press("Shift+Enter")
        title = page.get_by_text("Roofline explorer")
        expect(title).to_be_visible(timeout=20_000)
        assert time.perf_counter() - start < 3.0

        page.get_by_role("button", name="Show me").click()
        box = page.get_by_role("spinbutton", name="Batch, exact value")
        box.fill("64")
        expect(page.get_by_role("status").filter(has_text="batch 64")).to_contain_text("6,450 tokens/s")
        page.keyboard.press("d")  # twice "d" deletes a cell in JupyterLab: not from inside a figure
        page.keyboard.press("d")
        assert page.locator(".jp-CodeCell").count() == 2

        page.locator(".jp-CodeCell").last.click()
        page.keyboard.press("Shift+Enter")
        expect(page.get_by_text("batch is 64", exact=True)).to_be_visible(timeout=10_000)
        if shots := os.environ.get("SHOTS"):
            page.screenshot(path=f"{shots}/lab.png")


PREDICTION = 'from interactives import Predict\nPredict("How many?", answer=7, unit="heads", key="00-heads")'
EXPLANATION = """<details class="explain"><summary>Explanation</summary>

Because it **is** so.

</details>
"""


def test_a_commit_opens_the_explanation_in_the_markdown_cell_below(lab: str, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1200, "height": 1200}) as context:
        page = opened(context, f"{lab}/lab/tree/lesson.ipynb")
        page.keyboard.press("Shift+Enter")
        box = page.get_by_label("Your answer in heads")
        box.wait_for(timeout=60_000)
        expect(page.get_by_text("Because it is so.")).to_be_hidden()
        box.fill("6")
        box.press("Enter")
        expect(page.get_by_text("Because it is so.")).to_be_visible()


def choose(page: Page, menu: str, item: str) -> None:
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item).first.click()


def test_a_saved_notebook_shows_living_figures_after_its_kernel_was_restarted_and_the_page_reloaded(
    lab: str,
    browser: Browser,
    folder: Path,
) -> None:
    with browser.new_context(viewport={"width": 1200, "height": 1800}) as context:
        page = opened(context, f"{lab}/lab/tree/saved.ipynb")
        page.keyboard.press("Shift+Enter")
        page.keyboard.press("Shift+Enter")
        expect(page.get_by_text("Roofline explorer")).to_be_visible(timeout=60_000)
        page.keyboard.press("Control+s")
        choose(page, "Kernel", "Restart Kernel…")
        page.get_by_role("button", name="Confirm Kernel Restart").click()
        page.get_by_text("| Idle").wait_for(timeout=60_000)
        assert "widget-view" in (folder / "saved.ipynb").read_text()

        page.reload()
        expect(page.get_by_text("Roofline explorer")).to_be_visible(timeout=60_000)
        expect(page.get_by_text("Before you start")).to_be_visible()
        told = page.locator(".course-saved")
        expect(told).to_have_count(2)
        expect(told.first).to_contain_text("run the cell above: Shift+Enter")
        assert "not found" not in page.locator(".jp-Notebook").inner_text()
        if shots := os.environ.get("SHOTS"):
            page.screenshot(path=f"{shots}/lab-saved.png")

        page.get_by_role("button", name="Show me").click()
        page.get_by_role("spinbutton", name="Batch, exact value").fill("64")
        expect(page.get_by_role("status").filter(has_text="batch 64")).to_contain_text("6,450 tokens/s")

        page.locator(".jp-CodeCell").nth(1).locator(".jp-InputArea").click()
        page.keyboard.press("Shift+Enter")
        expect(told).to_have_count(1, timeout=60_000)  # this cell's figure is tied to the kernel again
        expect(page.get_by_text("Roofline explorer")).to_be_visible()


def test_a_learner_finds_the_course_in_the_launcher_and_neither_instructors_tools_nor_the_products_folders(
    lab: str,
    browser: Browser,
) -> None:
    with browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{lab}/lab?reset")  # without what an earlier test had open
        expect(page.get_by_text("Shift+Enter runs a cell and goes to the next one.")).to_be_visible(timeout=150_000)
        course = page.locator(".jp-Launcher-section", has_text="Course")
        labels = course.locator(".jp-LauncherCard-label")
        expect(labels.nth(2)).to_have_text("Problem sets", timeout=60_000)  # the cards come once the folders are read
        titles = labels.all_inner_texts()
        assert titles[:3] == ["1 · Prefill and decode", "3 · KV cache", "Problem sets"]
        files = page.locator(".jp-DirListing-item").all_inner_texts()
        assert [one.split("\n")[0] for one in files] == [
            "notebooks",
            "work",
            "figures.ipynb",
            "lesson.ipynb",
            "saved.ipynb",
        ]
        expect(page.get_by_role("tab", name="Create Assignment")).to_have_count(0)
        expect(page.get_by_role("menuitem", name="Nbgrader")).to_have_count(0)
        if shots := os.environ.get("SHOTS"):
            page.screenshot(path=f"{shots}/lab-launcher.png")
        course.get_by_text("1 · Prefill and decode").click()
        expect(page.get_by_role("tab", name="01_prefill_and_decode.ipynb")).to_be_visible(timeout=30_000)
        page.reload()
        expect(page.get_by_role("tab", name="01_prefill_and_decode.ipynb")).to_be_visible(timeout=60_000)
        expect(page.get_by_text("Shift+Enter runs a cell and goes to the next one.")).to_have_count(0)
