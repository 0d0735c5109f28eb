"""Feedback pages: what they say, what they never say, and that nothing in a submission runs in a reader's browser."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from ps3_course import ROOT
from tiny_course import CANARY, source_notebook
from traitlets.config import Config, PyFileConfigLoader

from autograder.course import source
from autograder.course.course import CourseError
from autograder.feedback import hints
from autograder.feedback import pages as feedback
from autograder.feedback.sanitize import Sanitize, clean_html, image_uri, markdown_html

ABOUT = {
    "notebook": "tiny", "assignment": "tiny", "student": "somebody", "score": 3.5, "max_score": 13, "late_penalty": 0,
}  # fmt: skip

HOSTILE = """# Answer <script>alert(1)</script>
<img src=x onerror=alert(2)> <svg onload=alert(3)><script>alert(4)</script></svg>
<a href="javascript:alert(5)">a</a> [b](javascript:alert(6)) [c](data:text/html;base64,PHNjcmlwdD4=)
<iframe src="https://example.com"></iframe> ![d](https://example.com/d.png) <style>body{display:none}</style>
<form action="https://example.com"><input name=x></form> <b onclick="alert(7)" style="position:fixed">bold</b>

![e](attachment:ok.png) [g](javascript:alert(11)) ![f](attachment:"onerror=alert(9)x=".png)

<math><mtext></form><form><mglyph><style></math><img src onerror=alert(8)>
"""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Reader(HTMLParser):
    """Collects tags, attributes and addresses of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def assert_harmless(page: str) -> None:
    reader = Reader(page)
    names = {tag for tag, _ in reader.tags}
    assert not names & {"script", "iframe", "object", "embed", "form", "input", "base", "svg", "math", "video", "audio"}
    for _, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc", "formaction")]
    for tag, attributes in reader.tags:
        for name in ("src", "href", "srcset", "poster", "action"):
            value = (attributes.get(name) or "").strip().lower()
            assert "javascript:" not in value
            assert tag == "a" or not value.startswith(("http", "//")), f"{tag} {name} {value}"
    assert "url(" not in page
    assert "@import" not in page


def error(text: str, name: str = "CheckError") -> Any:
    return new_output("error", ename=name, evalue=text, traceback=["SECRET traceback of ours"])


def graded_notebook() -> Any:
    notebook = source_notebook()
    scores = {"test-double": 0.0, "test-stack": 2.0, "test-sample": 0.0, "test-share": 1.5}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade"):
            about["score"] = scores.get(about["grade_id"], 0.0)
        if about.get("grade_id") == "test-double":
            cell.outputs = [
                new_output("stream", name="stdout", text="doubling 4\n"),
                error("double: 6 instead of 8\n  for input: 4\n  expected:  8\n  got:       6"),
            ]
        if about.get("grade_id") == "test-sample":
            cell.outputs = [error("sample: the test's 15 seconds were over before it returned", "NoAnswer")]
        if about.get("grade_id") == "words":
            cell.source = HOSTILE
            cell.attachments = {
                "ok.png": {"image/png": PIXEL},
                '"onerror=alert(9)x=".png': {"image/png": PIXEL},
                "evil.svg": {"image/svg+xml": "<svg><script>alert(1)</script></svg>"},
            }
            about["comment"] = "Good, but see <script>alert(10)</script> lesson 4."
    notebook.cells.append(
        new_code_cell(
            "plot()",
            outputs=[
                new_output("display_data", data={"text/html": HOSTILE}),
                new_output(
                    "display_data", data={"image/svg+xml": "<svg onload='alert(1)'/>", "text/plain": "a <plot>"}
                ),
                new_output("display_data", data={"image/png": "no base64 <script>", "text/plain": "<b>plain</b>"}),
                new_output("display_data", data={"application/javascript": "alert(1)"}),
                new_output(
                    "error",
                    ename="ValueError",
                    evalue="<script>bad</script>",
                    traceback=["\x1b[31mCell In[3], line 1\x1b[0m\n----> 1 plot()", "File /usr/lib/python/secret.py:5"],
                ),
            ],
        )
    )
    notebook.metadata["autograder"] = {"seed": 424242}
    return notebook


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: Any) -> str:
    from nbformat import write

    root = tmp_path_factory.mktemp("feedback")
    path = root / "tiny.ipynb"
    write(source_notebook(), path)
    known = source.read(path)
    found = [hints.Hint("x + 2", "test-d*", "6 instead of 8", "Two times four, not four plus two.")]
    told = dict.fromkeys((cell.name for cell in known.cells), "")  # every message is of a check that is shown
    parts = [feedback._part(cell, known, found, told) for cell in graded_notebook().cells]
    next(part for part in parts if part.name == "words").score = None
    return feedback.page(ABOUT, parts)


def test_a_failed_test_says_what_was_expected_what_came_and_for_which_input(rendered: str) -> None:
    section = rendered.split("Test test-double")[1].split("</section>")[0]
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section))
    assert "0 of 3 points, not passed" in words
    assert "double: 6 instead of 8 Input 4 Expected 8 Your code gave 6" in words
    assert "doubling 4" in words


def test_the_hint_of_a_known_mistake_is_given(rendered: str) -> None:
    assert "Two times four, not four plus two." in rendered
    assert rendered.count("<strong>Hint.</strong>") == 1


def test_no_answer_partial_credit_and_waiting_are_said_in_words(rendered: str) -> None:
    assert "sample: the test&#39;s 15 seconds were over before it returned" in rendered
    assert "1.5 of 2, partly" in rendered
    assert "waits to be graded by hand" in rendered
    assert "Score: 3.5 / 13.0" in rendered


def test_hidden_tests_seeds_and_our_tracebacks_are_not_on_the_page(rendered: str) -> None:
    for secret in (CANARY, "HIDDEN TESTS", "random_inputs(1)", "424242", "SECRET", "secret.py"):
        assert secret not in rendered
    assert "check_equal(" in re.sub("<[^>]+>", "", rendered)  # the visible part is


def test_nothing_of_a_submission_runs_or_loads(rendered: str) -> None:
    assert_harmless(rendered)
    (policy,) = [a["content"] for a in Reader(rendered).all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")


def test_what_is_harmless_is_kept(rendered: str) -> None:
    assert "<b>bold</b>" in rendered
    assert f"data:image/png;base64,{PIXEL}" in rendered
    assert "&lt;b&gt;plain&lt;/b&gt;" in rendered
    assert "Cell In[3], line 1" in rendered
    svg = [a["src"] for a in Reader(rendered).all("img") if (a["src"] or "").startswith("data:image/svg+xml;base64,")]
    assert len(svg) == 1


def test_the_page_can_be_read_by_keyboard_and_by_ear(rendered: str) -> None:
    reader = Reader(rendered)
    targets = {a.get("id") for _, a in reader.tags}
    links = [a["href"] or "" for a in reader.all("a") if (a.get("href") or "").startswith("#")]
    assert len(links) == 8  # past the navigation, and to each graded part
    assert {link[1:] for link in links} <= targets
    assert reader.all("html")[0]["lang"] == "en"
    assert len(reader.all("main")) == len(reader.all("nav")) == len(reader.all("h1")) == 1
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all("alt" in a for a in reader.all("img"))
    css = (Path(feedback.__file__).parent / "templates/feedback.css").read_text()
    assert "prefers-color-scheme: dark" in css
    assert ":focus-visible" in css


def contrast(one: str, two: str) -> float:
    """WCAG's contrast ratio of two colours #rrggbb."""

    def light(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(one), light(two)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_stand_out_from_their_ground(scheme: int) -> None:
    css = (Path(feedback.__file__).parent / "templates/feedback.css").read_text()
    block = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[scheme]
    colours = {name: f"#{''.join(2 * c for c in value) if len(value) == 3 else value}"
               for name, value in re.findall(r"--(\w+): #(\w+);", block)}  # fmt: skip
    for name in colours.keys() - {"ground", "soft", "line"}:
        assert contrast(colours[name], colours["ground"]) >= 4.5, name
        assert contrast(colours[name], colours["soft"]) >= 4.5, name


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "<scr<script>ipt>alert(1)</script>",
        "<img src='data:text/html;base64,PHN2Zz4=' onerror=alert(1)>",
        "<a href=' java\nscript:alert(1)'>x</a>",
        "<a href='vbscript:x'>x</a><a href='//example.com'>y</a>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
        "<textarea><img title='</textarea><img src onerror=alert(1)>'>",
        "<!--><img src=x onerror=alert(1)>-->",
        "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
        "<p style='background:url(https://example.com)'>x</p>",
    ],
)
def test_html_and_markdown_are_made_harmless(text: str) -> None:
    assert_harmless(clean_html(text))
    assert_harmless(markdown_html(text))


def test_a_text_that_the_renderer_refuses_is_shown_as_it_is() -> None:
    assert_harmless(markdown_html("![x](attachment:missing.png) <script>"))
    assert "&lt;b&gt;" in markdown_html("![x]( attachment:missing.png) <b>")


def test_an_image_has_to_be_one() -> None:
    assert image_uri("image/png", PIXEL) == f"data:image/png;base64,{PIXEL}"
    assert image_uri("image/png", "<script>") is None
    assert image_uri("image/png", 5) is None
    assert image_uri("text/html", PIXEL) is None


def test_formgraders_page_is_harmless_too(tmp_path: Path) -> None:
    import nbgrader
    from nbconvert.exporters import HTMLExporter

    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT / "exercises")).load_config()
    templates = Path(nbgrader.__file__).parent / "server_extensions/formgrader/templates"
    used = Config(HTMLExporter=config.HTMLExporter)
    used.HTMLExporter.template_name, used.HTMLExporter.extra_template_basedirs = "formgrade", [str(templates)]
    notebook = graded_notebook()
    notebook.cells.append(new_markdown_cell(HOSTILE))
    names = "assignment_id notebook_id submission_id base_url mathjax_url mathjax_config keyword last_name first_name"
    resources = dict.fromkeys(names.split(), "") | {"index": 0, "total": 1, "next": None, "prev": None, "nbgrader": {}}
    page, _ = HTMLExporter(config=used).from_notebook_node(notebook, resources)
    assert not re.search(r"<script[^>]*>\s*alert", page)
    for _, attributes in Reader(page).tags:
        assert not [value for value in attributes.values() if value and "alert(" in value]
    assert not [image for image in Reader(page).all("img") if not (image.get("src") or "").startswith("data:")]
    assert f"data:image/png;base64,{PIXEL}" in page


def test_hints_are_read_and_malformed_ones_named(tmp_path: Path) -> None:
    assert hints.read(tmp_path / "none.toml") == []
    file = tmp_path / "tiny.toml"
    file.write_text('[[hint]]\nkind = "k"\ntest = "test-*"\nmatch = "a+b"\ntext = "t"\n')
    (hint,) = hints.read(file)
    assert hints.first([hint], "test-x", "CheckError: aab") is hint
    assert hints.first([hint], "other", "aab") is None
    assert hints.first([hint], "test-x", "b") is None
    file.write_text('[[hint]]\nkind = "k"\nmatch = "("\ntext = "t"\n')
    with pytest.raises(CourseError, match=r"tiny\.toml"):
        hints.read(file)


def test_sanitizing_leaves_sources_of_code_alone() -> None:
    cell = new_code_cell("x = '<b>'", outputs=[new_output("stream", name="stdout", text="<b>")])
    notebook, _ = Sanitize().preprocess(new_notebook(cells=[cell]), SimpleNamespace())
    assert notebook.cells[0].source == "x = '<b>'"
    assert notebook.cells[0].outputs[0].text == "<b>"


@pytest.mark.parametrize(
    ("shown", "step"),
    [
        ("", "Call your function with this input in a cell of your own"),
        ("q: a wrong value\n  for input: a list of 2 (hidden)", "Make up a small input of this kind"),
        ("q: a wrong value\n  for input: a list of 2 (hidden)\n  think of:  Small is not zero.", ""),
    ],
)
def test_a_mistake_that_no_hint_knows_still_gets_a_next_step(shown: str, step: str) -> None:
    part = feedback.Part("test", "group-of-zeros")
    message = "q: 0 at [0] instead of 50\n  for input: [5e-4, 2e-4]\n  expected:  [127, 50]\n  got:       [0, 0]"
    feedback._explain(part, new_output("error", ename="CheckError", evalue=message, traceback=[]), [], shown)
    assert part.hint.startswith(step)
    assert bool(part.hint) == bool(step)


def test_an_error_of_the_learners_function_that_no_hint_knows_gets_a_next_step_too() -> None:
    part = feedback.Part("test", "whole-ones")
    message = "max_sequences raised ValueError: nothing fits (line 4 of its cell: raise ValueError('nothing fits'))"
    feedback._explain(part, new_output("error", ename="ValueError", evalue=message, traceback=[]), [], "")
    assert part.summary == message
    assert part.hint.startswith("Call your function with the inputs that stand in the test below")


def test_the_page_shows_what_a_hidden_test_asks_to_think_of_as_a_sentence_of_its_own() -> None:
    part = feedback.Part("test", "group-of-zeros")
    error = new_output("error", ename="CheckError", evalue="q: 0 at [0] instead of 50", traceback=[])
    shown = "q: a wrong value\n  for input: a list of 2 (hidden)\n  think of:  Small is not zero."
    feedback._explain(part, error, [], shown)
    assert (part.summary, part.think) == ("q: a wrong value", "Small is not zero.")
    assert part.fields == [("Input", "a list of 2 (hidden)")]
    assert "<strong>Think of this.</strong> Small is not zero." in feedback.page({"score": 0, "max_score": 1}, [part])
